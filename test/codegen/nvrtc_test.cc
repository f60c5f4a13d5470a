// SPDX-License-Identifier: Apache-2.0
// NVRTC takes every CUDA kernel, for each generation of machines.
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "codegen/compile.h"
#include "gtest/gtest.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "test/backends/nvrtc.h"
#include "test/codegen/many_folds.h"
#include "test/codegen/op_graphs.h"
#include "test/ir/random_graph.h"

namespace torch_lazy::codegen {
namespace {

constexpr const char* kArchitectures[] = {"sm_80", "sm_90", "sm_100"};

// The graphs of golden files: from "graph @" to the line "}".
std::vector<ir::Graph> GoldenGraphs(const std::string& folder) {
  std::vector<ir::Graph> graphs;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::ifstream stream(file.path());
    std::string line, text;
    while (std::getline(stream, line)) {
      if (line.rfind("graph @", 0) == 0) text.clear();
      absl::StrAppend(&text, line, "\n");
      if (line != "}" || text.rfind("graph @", 0) != 0) continue;
      const absl::StatusOr<ir::Graph> graph = ir::Parse(text);
      EXPECT_TRUE(graph.ok()) << file.path() << ": " << graph.status() << "\n" << text;
      if (graph.ok()) graphs.push_back(*graph);
      text.clear();
    }
  }
  EXPECT_FALSE(graphs.empty()) << folder;
  return graphs;
}

class EveryKernel : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { LAZY_ASSERT_NVRTC(); }

  // Each kernel once.
  void Add(const ir::Graph& graph, std::vector<int64_t> seen_extents = {}) {
    CompileOptions options;
    options.target = Target::kCuda;
    options.verify = true;
    options.seen_extents = std::move(seen_extents);
    const absl::StatusOr<Plan> plan = Compile(graph, options);
    ASSERT_TRUE(plan.ok()) << plan.status() << "\n" << ir::Print(graph);
    for (const Kernel& kernel : plan->kernels) {
      if (!names_.insert(kernel.name).second) continue;
      EXPECT_TRUE(kernel.threads >= 32 && kernel.threads <= 1024 && kernel.threads % 32 == 0);
      EXPECT_GE(kernel.iterations_per_block, 1);
      const absl::Status status = (*backends::cuda::Nvrtc::Find())->Compile(kernel.source, GetParam()).status();
      EXPECT_TRUE(status.ok()) << status << "\n" << kernel.source << "\n" << ir::Print(graph);
    }
  }

 private:
  std::set<std::string> names_;
};

TEST_P(EveryKernel, TakesGoldens) {
  for (const char* folder : {"test/golden/kernels", "test/golden/cuda"}) {
    for (const ir::Graph& graph : GoldenGraphs(folder)) {
      Add(graph);
      Add(graph, std::vector<int64_t>(16, 3000));
      if (HasFailure()) return;
    }
  }
}

TEST_P(EveryKernel, TakesEveryOpOfEveryType) {
  for (const ir::DType dtype : DTypesOfOps()) {
    for (const OpGraph& ops : OpGraphs(dtype)) Add(ops.graph);
  }
}

TEST_P(EveryKernel, TakesRandomGraphs) {
  for (uint32_t seed = 0; seed < 20 && !HasFailure(); ++seed) Add(ir::MakeRandomGraph(seed, 24).graph);
}

// What a block fetches ahead: bf16 activations, and what each token has, which all channels read. A row is a channel's,
// of two loops, batch and tokens: 12 bytes an element.
constexpr absl::string_view kRowsOfTwoLoops = R"(
graph @channels(%x: bf16[s0, s1, s2], %y: bf16[s0, s1, s2], %m: f32[s0, 1, s2], %r: f32[s0, 1, s2], %b: f32[s1]) {
  %0 = cast %x : f32[s0, s1, s2]
  %1 = cast %y : f32[s0, s1, s2]
  %2 = expand %m : f32[s0, s1, s2]
  %3 = sub %1, %2 : f32[s0, s1, s2]
  %4 = expand %r : f32[s0, s1, s2]
  %5 = mul %3, %4 : f32[s0, s1, s2]
  %6 = mul %0, %5 : f32[s0, s1, s2]
  %7 = sum %6 {dims=[0, 2], keepdim=false} : f32[s1]
  %8 = add %7, %b : f32[s1]
  return %8
}
)";

TEST_P(EveryKernel, FitsRowsOfSeveralLoopsIntoSharedMemory) {
  const absl::StatusOr<ir::Graph> graph = ir::Parse(kRowsOfTwoLoops);
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (const int64_t batch : {16, 64, 128}) Add(*graph, {batch, 512, 49});
}

// Down so many columns that a thread does neighbours: it has accumulators for each.
TEST_P(EveryKernel, FitsManyFoldsIntoSharedMemory) {
  const absl::StatusOr<ir::Graph> graph = ir::Parse(ManyFolds(12));
  ASSERT_TRUE(graph.ok()) << graph.status() << ManyFolds(12);
  Add(*graph, {512, 32768});
}

INSTANTIATE_TEST_SUITE_P(Architectures, EveryKernel, testing::ValuesIn(kArchitectures),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace torch_lazy::codegen
