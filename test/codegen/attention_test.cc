// SPDX-License-Identifier: Apache-2.0
// Attention of a few queries: what is computed, from where it lies.
#include "gtest/gtest.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

// batch, heads, rows, length, width
const std::vector<std::vector<int64_t>> kSizes = {
    {1, 2, 1, 3, 8},   {2, 3, 1, 300, 64}, {1, 8, 4, 144, 64}, {1, 1, 1, 1, 1},  {2, 1, 3, 40, 5},  {1, 2, 1, 17, 96},
    {1, 1, 1, 5, 256}, {1, 2, 1, 7, 300},  {2, 2, 0, 3, 8},    {1, 2, 1, 0, 16}, {1, 2, 2, 1100, 8}};
constexpr Tolerance kTolerance = {1e-2, 1e-2};

constexpr absl::string_view kPlain =
    R"(graph @g(%q: f32[s0, s1, s2, s4], %k: bf16[s0, s1, s3, s4], %v: bf16[s0, s1, s3, s4]) {
  %0 = attend %q, %k, %v : bf16[s0, s1, s2, s4]
  return %0
})";

TEST(Attention, IsOneLaunch) {
  const Plan plan = PlanOf(kPlain, {1, 32, 1, 144, 64});
  ASSERT_EQ(plan.steps.size(), 1) << plan.ToString();
  EXPECT_EQ(plan.steps[0].kind, Step::Kind::kLaunch);
  EXPECT_EQ(plan.steps[0].instances.size(), 1);
}

TEST(Attention, IsRightForAllSizes) {
  for (const std::vector<int64_t>& seen :
       {std::vector<int64_t>{1, 32, 1, 144, 64}, {2, 2, 1, 4000, 8}, {1, 8, 4, 900, 128}})
    CheckTextFor(seen, kPlain, kSizes, kTolerance);
}

TEST(Attention, AddsABias) {
  constexpr absl::string_view text =
      R"(graph @g(%q: f32[s0, s1, s2, s4], %k: f16[s0, s1, s3, s4], %v: f16[s0, s1, s3, s4], %b: f16[1, 1, s2, s3]) {
  %0 = expand %b : f16[s0, s1, s2, s3]
  %1 = attend_biased %q, %k, %v, %0 : f16[s0, s1, s2, s4]
  return %1
})";
  CheckTextFor({1, 32, 1, 144, 64}, text, kSizes, kTolerance);
}

// Of rows that see nothing, 0; of others, what the rest is.
TEST(Attention, MasksRows) {
  constexpr absl::string_view text =
      R"(graph @g(%q: f32[s0, s1, s2, s4], %k: bf16[s0, s1, s3, s4], %v: bf16[s0, s1, s3, s4], %n: i64[1, 1, s2, 1]) {
  %0 = iota {dim=3} : i64[1, 1, s2, s3]
  %1 = expand %n : i64[1, 1, s2, s3]
  %2 = lt %0, %1 : bool[1, 1, s2, s3]
  %3 = const {value=0} : f32[]
  %4 = reshape %3 : f32[1, 1, 1, 1]
  %5 = expand %4 : f32[1, 1, s2, s3]
  %6 = const {value=-inf} : f32[]
  %7 = reshape %6 : f32[1, 1, 1, 1]
  %8 = expand %7 : f32[1, 1, s2, s3]
  %9 = where %2, %5, %8 : f32[1, 1, s2, s3]
  %10 = expand %9 : f32[s0, s1, s2, s3]
  %11 = attend_biased %q, %k, %v, %10 : bf16[s0, s1, s2, s4]
  return %11
})";
  CheckTextFor({1, 32, 1, 144, 64}, text, kSizes, kTolerance);
}

// Keys and values of fewer heads, part of a longer cache that is written by the same plan; nothing is copied.
TEST(Attention, ReadsACacheWhereItLies) {
  constexpr absl::string_view text =
      R"(graph @g(%q: f32[1, s0, s4], %c: bf16[1, s1, s3, s4], %n: bf16[1, s1, 1, s4], %v: bf16[1, s1, s3, s4]) {
  %5 = iota {dim=0} : i64[1]
  %0 = put %c, %n, %5 {dim=2} : bf16[1, s1, s3, s4]
  %1 = reshape %q : f32[s1, 1, s2, s4]
  %2 = reshape %0 : bf16[s1, 1, s3, s4]
  %3 = reshape %v : bf16[s1, 1, s3, s4]
  %4 = attend %1, %2, %3 : bf16[s1, 1, s2, s4]
  return %0 -> %c, %4
})";
  const Plan plan = PlanOf(text, {32, 8, 4, 144, 64});
  ASSERT_EQ(plan.steps.size(), 2) << plan.ToString();
  CheckTextFor({32, 8, 4, 144, 64}, text, {{32, 8, 4, 144, 64}, {6, 2, 3, 1, 8}, {6, 3, 2, 40, 5}}, kTolerance);
}

// Widths that are not side by side are read one by one.
TEST(Attention, OfKeysThatArePermuted) {
  constexpr absl::string_view text =
      R"(graph @g(%q: f32[s0, s1, s2, s4], %k: bf16[s0, s1, s4, s3], %v: bf16[s0, s3, s1, s4]) {
  %0 = permute %k {dims=[0, 1, 3, 2]} : bf16[s0, s1, s3, s4]
  %1 = permute %v {dims=[0, 2, 1, 3]} : bf16[s0, s1, s3, s4]
  %2 = attend %q, %0, %1 : bf16[s0, s1, s2, s4]
  return %2
})";
  EXPECT_EQ(PlanOf(text, {1, 32, 1, 144, 64}).steps.size(), 1);
  CheckTextFor({1, 32, 1, 144, 64}, text, kSizes, kTolerance);
}

}  // namespace
}  // namespace torch_lazy::codegen
