// SPDX-License-Identifier: Apache-2.0
#include "codegen/why_apart.h"

#include "codegen/compile.h"
#include "codegen/partition/partition.h"
#include "codegen/partition/partition_text.h"
#include "gtest/gtest.h"
#include "ir/parse.h"
#include "test/ir/random_graph.h"

namespace torch_lazy::codegen {
namespace {

// %p0 is node 0, %0 node 1, and so on.
std::string Why(absl::string_view text, ir::Value a, ir::Value b, Target target = Target::kCpu) {
  CompileOptions options;
  options.target = target;
  return *WhyApart(*ir::Parse(text), options, a, b);
}

TEST(WhyApart, ACostlyOperationIsNotDoneForEachRow) {
  EXPECT_EQ(Why(R"(graph @g(%x: f32[1, s1], %y: f32[s0, s1]) {
  %0 = sin %x : f32[1, s1]
  %1 = expand %0 : f32[s0, s1]
  %2 = add %1, %y : f32[s0, s1]
  return %2
})",
                2, 4),
            "repeats_costly_op: a costly operation would be done again for each place of a broadcast");
}

TEST(WhyApart, ACallStandsBetween) {
  constexpr absl::string_view kText = R"(graph @g(%x: f32[s0]) {
  %0 = exp %x : f32[s0]
  %1 = call %0 {callee="f", index=0, inout=[-1], may_fail=false} : f32[s0]
  %2 = add %0, %1 : f32[s0]
  return %2
})";
  EXPECT_EQ(Why(kText, 1, 3), "needed_before: something between the two has to run first");
  EXPECT_EQ(Why(kText, 1, 2),
            "one of the two is not computed by a kernel: a call, a library's product, a view or a constant");
}

TEST(WhyApart, TheySayIfTheyAreNot) {
  EXPECT_EQ(Why(R"(graph @g(%x: f32[s0]) {
  %0 = exp %x : f32[s0]
  %1 = neg %0 : f32[s0]
  return %1
})",
                1, 2),
            "they share a kernel");
}

TEST(WhyApart, NothingInCommon) {
  EXPECT_EQ(Why(R"(graph @g(%x: f32[s0], %y: f32[s1]) {
  %0 = exp %x : f32[s0]
  %1 = exp %y : f32[s1]
  return %0, %1
})",
                2, 3),
            "neither reads the other, nor do they read the same at the same places");
}

TEST(AllApart, AreThoseWhereOneNeedsTheOther) {
  const ir::Graph graph = *ir::Parse(R"(graph @g(%x: f32[1, s1], %y: f32[s0, s1]) {
  %0 = sin %x : f32[1, s1]
  %1 = expand %0 : f32[s0, s1]
  %2 = add %1, %y : f32[s0, s1]
  %3 = exp %2 : f32[s0, s1]
  return %3
})");
  const std::vector<Apart> all = *AllApart(graph, CompileOptions());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].made, 2);       // sin
  EXPECT_EQ(all[0].needed_by, 4);  // add, not the view between them
  EXPECT_EQ(all[0].rule, "repeats_costly_op");
  EXPECT_EQ(all[0].words, WordsFor(all[0].rule));
}

TEST(AllApart, AreNoneWhereAllShareAKernel) {
  const ir::Graph graph = *ir::Parse(R"(graph @g(%x: f32[s0]) {
  %0 = exp %x : f32[s0]
  %1 = neg %0 : f32[s0]
  return %1
})");
  EXPECT_TRUE(AllApart(graph, CompileOptions())->empty());
}

// A rule that has no words would be told by its name alone.
TEST(WhyApart, EachRuleHasWords) {
  size_t count = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const ir::RandomGraph random = ir::MakeRandomGraph(seed, 60);
    for (const Target target : {Target::kCpu, Target::kCuda}) {
      CompileOptions options;
      options.target = target;
      options.seen_extents.assign(16, 3000);
      const PassedGraph passed = *RunAllPasses(random.graph, options);
      const Factors factors(passed.graph);
      std::vector<Reason> reasons;
      MakePartition(passed.graph, PlaceOperands(passed.graph, factors), factors, options, &reasons);
      for (const Reason& reason : reasons) EXPECT_NE(WordsFor(reason.rule), "") << reason.rule;
      count += reasons.size();
    }
  }
  EXPECT_GT(count, 1000u);
}

}  // namespace
}  // namespace torch_lazy::codegen
