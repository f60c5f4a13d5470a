// SPDX-License-Identifier: Apache-2.0
// A vector by matrices: what is computed, and that it takes no library's call.
#include "codegen/passes/vector_products.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

const std::vector<std::vector<int64_t>> kSizes = {{5, 4}, {24, 8}, {1, 1}, {7, 0}, {40, 171}, {3, 4103}, {130, 2048}};
constexpr Tolerance kTolerance = {2e-2, 2e-2};

// A feed-forward layer with a gate, and the residual.
constexpr absl::string_view kGated =
    R"(graph @g(%x: bf16[1, s1], %g: bf16[s0, s1], %u: bf16[s0, s1], %d: bf16[s1, s0]) {
  %0 = permute %g {dims=[1, 0]} : bf16[s1, s0]
  %1 = matmul %x, %0 : bf16[1, s0]
  %2 = permute %u {dims=[1, 0]} : bf16[s1, s0]
  %3 = matmul %x, %2 : bf16[1, s0]
  %4 = cast %1 : f32[1, s0]
  %5 = tanh %4 : f32[1, s0]
  %6 = cast %3 : f32[1, s0]
  %7 = mul %5, %6 : f32[1, s0]
  %8 = cast %7 : bf16[1, s0]
  %9 = permute %d {dims=[1, 0]} : bf16[s0, s1]
  %10 = matmul %8, %9 : bf16[1, s1]
  %11 = cast %10 : f32[1, s1]
  %12 = cast %x : f32[1, s1]
  %13 = add %11, %12 : f32[1, s1]
  %14 = cast %13 : bf16[1, s1]
  return %14
})";

TEST(VectorProducts, OfAGatedLayerAreTwoKernels) {
  const Plan plan = PlanOf(kGated, {8192, 2048});
  ASSERT_EQ(plan.steps.size(), 2) << plan.ToString();
  for (const Step& step : plan.steps) EXPECT_EQ(step.kind, Step::Kind::kLaunch);
}

TEST(VectorProducts, OfAGatedLayerAreRight) {
  CheckText(kGated, kSizes, kTolerance);
  CheckTextFor({8192, 2048}, kGated, kSizes, kTolerance);
}

TEST(VectorProducts, WithABiasAreRoundedOnce) {
  constexpr absl::string_view text = R"(graph @g(%x: f16[1, s1], %w: f16[s0, s1], %b: f16[s0]) {
  %0 = permute %w {dims=[1, 0]} : f16[s1, s0]
  %1 = matmul_bias %x, %0, %b : f16[1, s0]
  return %1
})";
  const Plan plan = PlanOf(text, {8192, 2048});
  ASSERT_EQ(plan.steps.size(), 1);
  EXPECT_EQ(plan.steps[0].kind, Step::Kind::kLaunch);
  CheckTextFor({8192, 2048}, text, kSizes, kTolerance);
}

// Query and key of a token, whose rows are other products of other factors: 32 heads that share 8, and 8.
TEST(VectorProducts, OfOneVectorShareALaunch) {
  constexpr absl::string_view text =
      R"(graph @g(%x: bf16[1, s0], %q: bf16[s1, s0], %k: bf16[s2, s0]) {
  %0 = permute %q {dims=[1, 0]} : bf16[s0, s1]
  %1 = matmul %x, %0 : bf16[1, s1]
  %2 = reshape %1 : bf16[s3, s4, s5]
  %3 = permute %k {dims=[1, 0]} : bf16[s0, s2]
  %4 = matmul %x, %3 : bf16[1, s2]
  %5 = reshape %4 : bf16[s3, s5]
  return %2, %5
})";
  const Plan plan = PlanOf(text, {2048, 2048, 512, 8, 4, 64});
  ASSERT_EQ(plan.steps.size(), 1) << plan.ToString();
  ASSERT_EQ(plan.steps[0].instances.size(), 2);
  EXPECT_EQ(plan.steps[0].instances[0].kernel, plan.steps[0].instances[1].kernel);
  CheckTextFor({2048, 2048, 512, 8, 4, 64}, text, {{171, 24, 6, 3, 4, 2}}, kTolerance);
}

// The rows of a part of a matrix begin at another element each.
TEST(VectorProducts, OfAPartOfAMatrix) {
  CheckTextFor({512, 2048, 2052}, R"(graph @g(%x: bf16[1, s1], %w: bf16[s0, s2]) {
  %0 = slice %w {starts=[0, 1], steps=[1, 1]} : bf16[s0, s1]
  %1 = permute %0 {dims=[1, 0]} : bf16[s1, s0]
  %2 = matmul %x, %1 : bf16[1, s0]
  return %2
})",
               {{3, 4, 7}, {9, 171, 175}, {4, 2048, 2052}}, kTolerance);
}

}  // namespace
}  // namespace torch_lazy::codegen
