// SPDX-License-Identifier: Apache-2.0
#include "gtest/gtest.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

const std::vector<std::vector<int64_t>> kTwoSizes = {{3, 5}, {64, 48}, {1, 1}, {0, 4}, {129, 1000}};

TEST(Pointwise, ChainIsOneKernel) {
  const char* const text = R"(graph @g(%x: f32[s0, s1], %y: f32[s0, s1]) {
  %0 = mul %x, %y : f32[s0, s1]
  %1 = add %0, %x : f32[s0, s1]
  %2 = sqrt %1 : f32[s0, s1]
  return %2
})";
  EXPECT_EQ(PlanOf(text).kernels.size(), 1u);
  CheckText(text, kTwoSizes);
}

TEST(Pointwise, BroadcastsAndPermutes) {
  CheckText(R"(graph @g(%x: f32[s0, s1], %w: f32[s1], %v: f32[s1, s0]) {
  %0 = reshape %w : f32[1, s1]
  %1 = expand %0 : f32[s0, s1]
  %2 = permute %v {dims=[1, 0]} : f32[s0, s1]
  %3 = mul %x, %1 : f32[s0, s1]
  %4 = sub %3, %2 : f32[s0, s1]
  return %4, %2
})",
            kTwoSizes);
}

TEST(Pointwise, TransposedOperandsAreReadInTiles) {
  const char* const text =
      R"(graph @g(%x: bf16[s0, s1, s2], %b: bool[s0, s1, s2], %n: i64[s1, s2], %y: f32[s0, s2, s1]) {
  %0 = permute %x {dims=[0, 2, 1]} : bf16[s0, s2, s1]
  %1 = cast %0 : f32[s0, s2, s1]
  %2 = permute %b {dims=[0, 2, 1]} : bool[s0, s2, s1]
  %3 = where %2, %1, %y : f32[s0, s2, s1]
  %4 = permute %n {dims=[1, 0]} : i64[s2, s1]
  %5 = reshape %4 : i64[1, s2, s1]
  %6 = expand %5 : i64[s0, s2, s1]
  %7 = cast %6 : f32[s0, s2, s1]
  %8 = add %3, %7 : f32[s0, s2, s1]
  return %8
})";
  EXPECT_NE(PlanOf(text).kernels[0].source.find("tile"), std::string::npos);
  CheckText(text,
            {{3, 5, 7}, {2, 16, 16}, {2, 17, 33}, {1, 100, 47}, {5, 15, 64}, {0, 16, 16}, {2, 1, 40}, {2, 40, 1}});
}

// Also where a share begins amid a run, rows are more than a block, and later runs are long.
TEST(Pointwise, ShortRunsAreWalkedSideBySide) {
  const char* const text = R"(graph @g(%x: f32[s0, s1, s2], %w: f32[s2], %v: f32[s0, 1, s2]) {
  %0 = sin %x : f32[s0, s1, s2]
  %1 = reshape %w : f32[1, 1, s2]
  %2 = expand %1 : f32[s0, s1, s2]
  %3 = mul %0, %2 : f32[s0, s1, s2]
  %4 = expand %v : f32[s0, s1, s2]
  %5 = add %3, %4 : f32[s0, s1, s2]
  %6 = concat %x, %3, %5 {dim=2} : f32[s0, s1, s3]
  return %6
})";
  const std::vector<std::vector<int64_t>> sizes = {{7, 40, 3, 9},    {3, 700, 2, 6},  {900, 4, 3, 9},    {50, 5, 1, 3},
                                                   {40, 33, 16, 48}, {5, 40, 17, 51}, {4, 33, 100, 300}, {0, 8, 3, 9}};
  for (const std::vector<int64_t>& seen : {std::vector<int64_t>{7, 40, 3, 9}, {900, 4, 3, 9}, {4, 3, 3, 9}}) {
    CheckTextFor(seen, text, sizes, {1e-6, 1e-6});
  }
  if (OptionsFor({}).target != Target::kCpu) return;
  const auto are_side_by_side = [&](const std::vector<int64_t>& seen) {
    return HasText(PlanOf(text, seen), "r < runs");
  };
  EXPECT_TRUE(are_side_by_side({7, 40, 3, 9}));
  EXPECT_FALSE(are_side_by_side({7, 40, 17, 51}));
}

TEST(Pointwise, VectorsHoldShortRuns) {
  const char* const text = R"(graph @g(%x: f32[s0, s1, s2], %w: f32[s2], %v: f32[s0, s1, 1], %u: f32[s0, 1, s2]) {
  %0 = reshape %w : f32[1, 1, s2]
  %1 = expand %0 : f32[s0, s1, s2]
  %2 = exp %1 : f32[s0, s1, s2]
  %3 = mul %x, %2 : f32[s0, s1, s2]
  %4 = expand %v : f32[s0, s1, s2]
  %5 = add %3, %4 : f32[s0, s1, s2]
  %6 = expand %u : f32[s0, s1, s2]
  %7 = add %5, %6 : f32[s0, s1, s2]
  return %7, %2
})";
  const std::vector<std::vector<int64_t>> sizes = {{3, 200, 8}, {5, 1000, 3}, {2, 900, 24}, {40, 7, 32}, {3, 1, 5},
                                                   {2, 50, 33}, {3, 40, 100}, {4, 60, 1},   {0, 8, 8},   {3, 0, 8}};
  for (const int64_t places : {3, 8, 24}) CheckTextFor({3, 200, places}, text, sizes, {1e-6, 1e-6});
  if (OptionsFor({}).target != Target::kCpu) return;
  const auto holds_runs = [&](int64_t places) { return HasText(PlanOf(text, {3, 200, places}), "row_of[l]"); };
  EXPECT_TRUE(holds_runs(8) && holds_runs(32));
  EXPECT_FALSE(holds_runs(33));
}

TEST(Pointwise, ScalarsAndCasts) {
  CheckText(R"(graph @g(%x: bf16[s0, s1], $a: f64, $n: i64) {
  %0 = cast $a : f32[]
  %1 = reshape %0 : f32[1, 1]
  %2 = expand %1 : f32[s0, s1]
  %3 = cast %x : f32[s0, s1]
  %4 = mul %3, %2 : f32[s0, s1]
  %5 = cast %4 : bf16[s0, s1]
  %6 = cast %4 : f16[s0, s1]
  %7 = cast %4 : i32[s0, s1]
  %8 = cast $n : f32[]
  %9 = reshape %8 : f32[1, 1]
  %10 = expand %9 : f32[s0, s1]
  %11 = lt %4, %10 : bool[s0, s1]
  return %5, %6, %7, %11
})",
            kTwoSizes);
}

TEST(Reductions, RowsColumnsAndAll) {
  CheckText(R"(graph @g(%x: f32[s0, s1]) {
  %0 = mul %x, %x : f32[s0, s1]
  %1 = sum %0 {dims=[1], keepdim=false} : f32[s0]
  %2 = sum %0 {dims=[0], keepdim=false} : f32[s1]
  %3 = sum %x {dims=[0, 1], keepdim=false} : f32[]
  %4 = reduce_max %x {dims=[1], keepdim=true} : f32[s0, 1]
  %5 = argmax %x {dims=[0], keepdim=false} : i64[s1]
  %6 = argmin %x {dims=[1], keepdim=false} : i64[s0]
  return %1, %2, %3, %4, %5, %6
})",
            {{3, 5}, {64, 48}, {129, 1000}, {1, 1}}, {1e-6, 1e-6});
}

TEST(Reductions, SoftmaxIsOneKernel) {
  const char* const text = R"(graph @g(%x: f32[s0, s1]) {
  %0 = reduce_max %x {dims=[1], keepdim=true} : f32[s0, 1]
  %1 = expand %0 : f32[s0, s1]
  %2 = sub %x, %1 : f32[s0, s1]
  %3 = exp %2 : f32[s0, s1]
  %4 = sum %3 {dims=[1], keepdim=true} : f32[s0, 1]
  %5 = expand %4 : f32[s0, s1]
  %6 = div %3, %5 : f32[s0, s1]
  return %6
})";
  EXPECT_EQ(PlanOf(text).kernels.size(), 1u);
  CheckText(text, {{3, 5}, {64, 48}, {1, 1}, {129, 1000}}, {1e-6, 1e-9});
}

TEST(Reductions, OfNothing) {
  CheckText(R"(graph @g(%x: f32[0, s0], %y: f32[s0, 0]) {
  %0 = sum %x {dims=[0], keepdim=false} : f32[s0]
  %1 = sum %y {dims=[1], keepdim=true} : f32[s0, 1]
  %2 = reshape %y : f32[0]
  %3 = sum %2 {dims=[0], keepdim=false} : f32[]
  %4 = neg %2 : f32[0]
  %5 = permute %x {dims=[1, 0]} : f32[s0, 0]
  %6 = add %5, %y : f32[s0, 0]
  return %0, %1, %3, %4, %6
})",
            {{3}, {70}});
}

TEST(Memory, UpdatesInPlace) {
  CheckText(R"(graph @g(%p: f32[s0, s1], %g: f32[s0, s1], $lr: f64) {
  %0 = cast $lr : f32[]
  %1 = reshape %0 : f32[1, 1]
  %2 = expand %1 : f32[s0, s1]
  %3 = mul %g, %2 : f32[s0, s1]
  %4 = sub %p, %3 : f32[s0, s1]
  return %4 -> %p
})",
            kTwoSizes);
}

}  // namespace
}  // namespace torch_lazy::codegen
