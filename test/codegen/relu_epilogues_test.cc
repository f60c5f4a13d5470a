// SPDX-License-Identifier: Apache-2.0
// ReLU that a product does itself: where it is, and where it must stay a kernel.
#include "codegen/passes/relu_epilogues.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

const std::vector<std::vector<int64_t>> kSizes = {{3, 5, 4}, {16, 24, 8}, {1, 1, 1}, {0, 7, 3}, {40, 171, 32}};
constexpr Tolerance kTolerance = {2e-2, 2e-2};

// x w + b as %1, in f32 as %2, zeros as %4, and what is made of them.
std::string WithProduct(const std::string& rest, const std::string& zero = "0") {
  return absl::StrCat(R"(graph @g(%x: bf16[s0, s2], %w: bf16[s1, s2], %b: bf16[s1]) {
  %0 = permute %w {dims=[1, 0]} : bf16[s2, s1]
  %1 = matmul_bias %x, %0, %b : bf16[s0, s1]
  %2 = cast %1 : f32[s0, s1]
  %3 = const {value=)",
                      zero, R"(} : f32[]
  %one = reshape %3 : f32[1, 1]
  %4 = expand %one : f32[s0, s1]
)",
                      rest, "}");
}

const std::string kRelu = R"(  %5 = lt %2, %4 : bool[s0, s1]
  %6 = where %5, %4, %2 : f32[s0, s1]
  %7 = cast %6 : bf16[s0, s1]
)";

bool IsTaken(const std::string& text) {
  const Plan plan = PlanOf(text);
  return std::any_of(plan.steps.begin(), plan.steps.end(), [](const Step& step) { return step.is_relu; });
}

TEST(ReluEpilogues, AProductIsAllThereIs) {
  const std::string text = WithProduct(kRelu + "  return %7\n");
  CheckText(text, kSizes, kTolerance);
  const Plan plan = PlanOf(text);
  ASSERT_EQ(plan.steps.size(), 1);
  EXPECT_TRUE(plan.steps[0].is_relu);
  EXPECT_NE(plan.ToString().find("plus %p2[1], relu -> %out0"), std::string::npos) << plan.ToString();
}

TEST(ReluEpilogues, OfManyDims) {
  const std::string text = R"(graph @g(%x: bf16[1, s0, s2], %w: bf16[s1, s2], %b: bf16[s1]) {
  %0 = reshape %x : bf16[s0, s2]
  %1 = permute %w {dims=[1, 0]} : bf16[s2, s1]
  %2 = matmul_bias %0, %1, %b : bf16[s0, s1]
  %3 = reshape %2 : bf16[1, s0, s1]
  %4 = cast %3 : f32[1, s0, s1]
  %5 = const {value=0} : f32[]
  %one = reshape %5 : f32[1, 1, 1]
  %6 = expand %one : f32[1, s0, s1]
  %7 = lt %4, %6 : bool[1, s0, s1]
  %8 = where %7, %6, %4 : f32[1, s0, s1]
  %9 = cast %8 : bf16[1, s0, s1]
  %10 = cast %9 : f32[1, s0, s1]
  %11 = exp %10 : f32[1, s0, s1]
  return %9, %11
})";
  EXPECT_TRUE(IsTaken(text));
  CheckText(text, kSizes, kTolerance);
}

TEST(ReluEpilogues, TwoLayers) {
  const std::string text =
      R"(graph @g(%x: bf16[s0, s2], %w: bf16[s1, s2], %b: bf16[s1], %v: bf16[s2, s1], %c: bf16[s2]) {
  %0 = permute %w {dims=[1, 0]} : bf16[s2, s1]
  %1 = matmul_bias %x, %0, %b : bf16[s0, s1]
  %2 = cast %1 : f32[s0, s1]
  %3 = const {value=0} : f32[]
  %one = reshape %3 : f32[1, 1]
  %4 = expand %one : f32[s0, s1]
  %5 = lt %2, %4 : bool[s0, s1]
  %6 = where %5, %4, %2 : f32[s0, s1]
  %7 = cast %6 : bf16[s0, s1]
  %8 = permute %v {dims=[1, 0]} : bf16[s1, s2]
  %9 = matmul_bias %7, %8, %c : bf16[s0, s2]
  %10 = cast %9 : f32[s0, s2]
  %11 = expand %one : f32[s0, s2]
  %12 = lt %10, %11 : bool[s0, s2]
  %13 = where %12, %11, %10 : f32[s0, s2]
  %14 = cast %13 : bf16[s0, s2]
  return %14
})";
  CheckText(text, kSizes, {5e-2, 5e-2});
  const Plan plan = PlanOf(text);
  ASSERT_EQ(plan.steps.size(), 2);
  EXPECT_TRUE(plan.steps[0].is_relu && plan.steps[1].is_relu);
}

TEST(ReluEpilogues, WhatSomebodyElseReadsStays) {
  EXPECT_FALSE(IsTaken(WithProduct(kRelu + "  return %7, %1\n")));
  EXPECT_FALSE(IsTaken(WithProduct(kRelu + "  return %7, %2\n")));
  EXPECT_FALSE(IsTaken(WithProduct(kRelu + "  return %7, %5\n")));
  EXPECT_FALSE(IsTaken(WithProduct(kRelu + "  return %7, %6\n")));
}

TEST(ReluEpilogues, OtherChoicesStay) {
  EXPECT_FALSE(IsTaken(WithProduct(kRelu + "  return %7\n", "0.5")));
  EXPECT_FALSE(IsTaken(WithProduct(R"(  %5 = lt %4, %2 : bool[s0, s1]
  %6 = where %5, %4, %2 : f32[s0, s1]
  %7 = cast %6 : bf16[s0, s1]
  return %7
)")));
  EXPECT_FALSE(IsTaken(WithProduct(R"(  %5 = lt %2, %4 : bool[s0, s1]
  %6 = where %5, %2, %4 : f32[s0, s1]
  %7 = cast %6 : bf16[s0, s1]
  return %7
)")));
  EXPECT_FALSE(IsTaken(WithProduct(R"(  %5 = lt %2, %4 : bool[s0, s1]
  %6 = where %5, %4, %2 : f32[s0, s1]
  %7 = cast %6 : f16[s0, s1]
  return %7
)")));
}

}  // namespace
}  // namespace torch_lazy::codegen
