// SPDX-License-Identifier: Apache-2.0
// Products that are padded on a GPU: the same results for all sizes, whole multiples and empty ones included, and
// nothing is copied.
#include <algorithm>

#include "gtest/gtest.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

constexpr Tolerance kTolerance = {2e-2, 2e-2};
// Rows, words of a vocabulary, width.
const std::vector<int64_t> kTypical = {2048, 30522, 768};
const std::vector<std::vector<int64_t>> kSizes = {{3, 5, 4}, {16, 24, 8}, {1, 1, 1},
                                                  {0, 7, 3}, {3, 0, 3},   {40, 171, 32}};

int CountSteps(const Plan& plan, Step::Kind kind) {
  return static_cast<int>(
      std::count_if(plan.steps.begin(), plan.steps.end(), [&](const Step& step) { return step.kind == kind; }));
}

int CountInstances(const Plan& plan) {
  int instances = 0;
  for (const Step& step : plan.steps) instances += static_cast<int>(step.instances.size());
  return instances;
}

// Temporaries of two dims of symbols.
int CountMatrices(const Plan& plan) {
  return static_cast<int>(std::count_if(plan.buffers.begin(), plan.buffers.end(), [](const BufferSpec& buffer) {
    return buffer.kind == BufferSpec::Kind::kTemp && buffer.type.rank() == 2 && buffer.type.dims[0].is_symbol() &&
           buffer.type.dims[1].is_symbol();
  }));
}

// Scores, their softmax for a gradient of them, and the gradients of what they are made of.
constexpr char kHead[] = R"(graph @g(%x: bf16[s0, s2], %w: f32[s1, s2], %b: f32[s1]) {
  %0 = cast %w : bf16[s1, s2]
  %1 = cast %b : bf16[s1]
  %2 = permute %0 {dims=[1, 0]} : bf16[s2, s1]
  %3 = matmul_bias %x, %2, %1 : bf16[s0, s1]
  %4 = cast %3 : f32[s0, s1]
  %5 = reduce_max %4 {dims=[1], keepdim=true} : f32[s0, 1]
  %6 = expand %5 : f32[s0, s1]
  %7 = sub %4, %6 : f32[s0, s1]
  %8 = exp %7 : f32[s0, s1]
  %9 = sum %8 {dims=[1], keepdim=true} : f32[s0, 1]
  %10 = expand %9 : f32[s0, s1]
  %11 = div %8, %10 : f32[s0, s1]
  %12 = cast %11 : bf16[s0, s1]
  %13 = matmul %12, %0 : bf16[s0, s2]
  %14 = permute %12 {dims=[1, 0]} : bf16[s1, s0]
  %15 = matmul %14, %x : bf16[s1, s2]
  %16 = cast %12 : f32[s0, s1]
  %17 = sum %16 {dims=[0], keepdim=false} : f32[s1]
  %18 = cast %15 : f32[s1, s2]
  return %13, %17, %18
})";

TEST(PaddedProducts, HeadAndItsGradients) {
  CheckTextFor(kTypical, kHead, kSizes, kTolerance);
  const Plan plan = PlanOf(kHead, kTypical), plain = PlanOf(kHead, {2048, 30528, 768});
  ASSERT_EQ(plan.padded_extents.size(), 1);
  EXPECT_TRUE(plain.padded_extents.empty());
  EXPECT_EQ(CountSteps(plan, Step::Kind::kMatmul), 3);
  EXPECT_EQ(CountInstances(plan), CountInstances(plain) + 3);  // zeros
  EXPECT_EQ(CountMatrices(plan), CountMatrices(plain));
}

// Where the weight is a parameter, only its gradient has nothing but padded operands; scores' gradient lies padded for
// the other product.
TEST(PaddedProducts, WeightsInMemory) {
  constexpr char kText[] = R"(graph @g(%g: f32[s0, s1], %x: bf16[s0, s2], %w: bf16[s1, s2]) {
  %0 = exp %g : f32[s0, s1]
  %1 = cast %0 : bf16[s0, s1]
  %2 = matmul %1, %w : bf16[s0, s2]
  %3 = permute %1 {dims=[1, 0]} : bf16[s1, s0]
  %4 = matmul %3, %x : bf16[s1, s2]
  %5 = cast %4 : f32[s1, s2]
  %6 = neg %5 : f32[s1, s2]
  return %2, %6
})";
  CheckTextFor(kTypical, kText, kSizes, kTolerance);
  EXPECT_EQ(PlanOf(kText, kTypical).padded_extents.size(), 1);
}

// What is computed with three dims and multiplied with two: rows stay rows. Its other readers read it between the
// zeros.
TEST(PaddedProducts, OfReshapedValues) {
  constexpr char kText[] = R"(graph @g(%g: f32[s3, s4, s1], %w: f32[s1, s2]) {
  %0 = exp %g : f32[s3, s4, s1]
  %1 = cast %0 : bf16[s3, s4, s1]
  %2 = reshape %1 : bf16[s0, s1]
  %3 = cast %w : bf16[s1, s2]
  %4 = matmul %2, %3 : bf16[s0, s2]
  %5 = permute %2 {dims=[1, 0]} : bf16[s1, s0]
  %6 = matmul %5, %4 : bf16[s1, s2]
  %7 = cast %2 : f32[s0, s1]
  %8 = sum %7 {dims=[0], keepdim=false} : f32[s1]
  %9 = cast %6 : f32[s1, s2]
  %10 = sum %9 {dims=[0], keepdim=false} : f32[s2]
  return %4, %8, %10
})";
  CheckTextFor({2048, 30522, 768, 16, 128}, kText,
               {{6, 5, 4, 2, 3}, {16, 24, 8, 4, 4}, {1, 1, 1, 1, 1}, {0, 7, 3, 0, 4}, {36, 171, 32, 12, 3}},
               kTolerance);
  EXPECT_EQ(PlanOf(kText, {2048, 30522, 768, 16, 128}).padded_extents.size(), 1);
}

// All three extents, a value by itself transposed, a square: a value is padded along one of its dims.
TEST(PaddedProducts, OddAllAround) {
  constexpr char kText[] = R"(graph @g(%x: f32[s0, s2], %w: f32[s1, s2], %q: f32[s0, s0]) {
  %0 = cast %x : bf16[s0, s2]
  %1 = cast %w : bf16[s1, s2]
  %2 = permute %1 {dims=[1, 0]} : bf16[s2, s1]
  %3 = matmul %0, %2 : bf16[s0, s1]
  %4 = permute %0 {dims=[1, 0]} : bf16[s2, s0]
  %5 = matmul %4, %0 : bf16[s2, s2]
  %6 = cast %q : bf16[s0, s0]
  %7 = permute %6 {dims=[1, 0]} : bf16[s0, s0]
  %8 = matmul %6, %7 : bf16[s0, s0]
  %9 = cast %3 : f32[s0, s1]
  %10 = neg %9 : f32[s0, s1]
  %11 = cast %5 : f32[s2, s2]
  %12 = cast %8 : f32[s0, s0]
  return %10, %11, %12
})";
  const std::vector<int64_t> typical = {2047, 3001, 1999};
  CheckTextFor(typical, kText, {{3, 5, 4}, {16, 24, 8}, {1, 1, 1}, {0, 7, 3}, {3, 0, 3}, {5, 6, 0}}, kTolerance);
  EXPECT_GE(PlanOf(kText, typical).padded_extents.size(), 2);
}

// Zeros of both operands meet: infinities and NaNs stay where they were.
TEST(PaddedProducts, SpecialNumbers) {
  constexpr char kText[] = R"(graph @g(%x: f32[s0, s2], %w: f32[s1, s2], %g: f32[s0, s1]) {
  %0 = log %w : f32[s1, s2]
  %1 = cast %0 : bf16[s1, s2]
  %2 = cast %x : bf16[s0, s2]
  %3 = permute %1 {dims=[1, 0]} : bf16[s2, s1]
  %4 = matmul %2, %3 : bf16[s0, s1]
  %5 = cast %4 : f32[s0, s1]
  %6 = sum %5 {dims=[1], keepdim=false} : f32[s0]
  %7 = exp %g : f32[s0, s1]
  %8 = cast %7 : bf16[s0, s1]
  %9 = matmul %8, %1 : bf16[s0, s2]
  return %6, %9
})";
  CheckTextFor(kTypical, kText, {{3, 5, 4}, {16, 24, 8}, {9, 13, 1}}, kTolerance);
}

// Wanted as it is, and read: copied once, with many terms.
TEST(PaddedProducts, WantedResults) {
  constexpr char kText[] = R"(graph @g(%x: f32[s0, s2], %w: f32[s1, s2]) {
  %0 = cast %x : bf16[s0, s2]
  %1 = cast %w : bf16[s1, s2]
  %2 = permute %1 {dims=[1, 0]} : bf16[s2, s1]
  %3 = matmul %0, %2 : bf16[s0, s1]
  %4 = cast %3 : f32[s0, s1]
  %5 = reduce_max %4 {dims=[1], keepdim=false} : f32[s0]
  %6 = reshape %3 : bf16[s3, s4, s1]
  return %6, %5
})";
  const std::vector<int64_t> typical = {2048, 30522, 768, 16, 128};
  CheckTextFor(typical, kText, {{6, 5, 4, 2, 3}, {16, 24, 8, 4, 4}, {0, 7, 3, 0, 4}}, kTolerance);
  EXPECT_EQ(PlanOf(kText, typical).padded_extents.size(), 1);
}

}  // namespace
}  // namespace torch_lazy::codegen
