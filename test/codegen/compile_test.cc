// SPDX-License-Identifier: Apache-2.0
// Whoever hears of a kernel learns which nodes of the graph it computes, whatever passes have made of them.
#include <algorithm>

#include "codegen/compile.h"
#include "gtest/gtest.h"
#include "ir/parse.h"
#include "test/ir/random_graph.h"

namespace torch_lazy::codegen {
namespace {

Plan PlanOf(ir::Graph graph, Target target, std::vector<int64_t> extents) {
  for (size_t v = 0; v < graph.nodes.size(); ++v) graph.nodes[v].origin = static_cast<int32_t>(v);
  CompileOptions options;
  options.target = target;
  options.seen_extents = std::move(extents);
  return *Compile(graph, options);
}

TEST(Origins, OfRandomGraphsAreKnown) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const ir::RandomGraph random = ir::MakeRandomGraph(seed, 40);
    const std::vector<int64_t> extents(static_cast<size_t>(random.graph.num_symbols()), 64);
    for (const Target target : {Target::kCpu, Target::kCuda}) {
      const Plan plan = PlanOf(random.graph, target, extents);
      ASSERT_EQ(plan.origins.size(), plan.kernels.size());
      for (const std::vector<int32_t>& origins : plan.origins) {
        EXPECT_TRUE(std::is_sorted(origins.begin(), origins.end()));
        EXPECT_FALSE(origins.empty()) << "seed " << seed << ": " << plan.ToString();
      }
    }
  }
}

// Sums of shares are made of the node whose sum they are; what two kernels compute has both.
TEST(Origins, OfALongSumAreInBothItsKernels) {
  const ir::Graph graph = *ir::Parse(R"(graph @g(%x: f32[s0, s1]) {
  %0 = mul %x, %x : f32[s0, s1]
  %1 = sum %0 {dims=[0], keepdim=false} : f32[s1]
  return %1
})");
  const Plan plan = PlanOf(graph, Target::kCuda, {100000, 64});
  std::vector<std::vector<int32_t>> origins = plan.origins;
  std::sort(origins.begin(), origins.end());
  EXPECT_EQ(origins, (std::vector<std::vector<int32_t>>{{1, 2}, {2}}));
}

}  // namespace
}  // namespace torch_lazy::codegen
