// SPDX-License-Identifier: Apache-2.0
// Reductions down so many columns that a thread does neighbours.
#include "gtest/gtest.h"
#include "test/codegen/many_folds.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

const std::vector<int64_t> kVeryMany = {300, 50304};
// Columns that are no whole vectors, or no whole blocks.
const std::vector<std::vector<int64_t>> kSizes = {{0, 64}, {1, 4}, {5, 1000}, {70, 128}, {3, 131}, {1, 1}};

TEST(VeryManyColumns, SumsAndLargest) {
  CheckTextFor(kVeryMany, R"(graph @g(%x: bf16[s0, s1], %w: f32[s1], %r: f32[s0, 1]) {
  %0 = cast %x : f32[s0, s1]
  %1 = reshape %w : f32[1, s1]
  %2 = expand %1 : f32[s0, s1]
  %3 = mul %0, %2 : f32[s0, s1]
  %4 = expand %r : f32[s0, s1]
  %5 = add %3, %4 : f32[s0, s1]
  %6 = sum %5 {dims=[0], keepdim=false} : f32[s1]
  %7 = reduce_max %0 {dims=[0], keepdim=false} : f32[s1]
  %8 = argmax %0 {dims=[0], keepdim=false} : i64[s1]
  %9 = mul %6, %w : f32[s1]
  return %9, %7, %8
})",
               {kSizes.begin() + 1, kSizes.end()}, {1e-5, 1e-4});  // no index is the largest of none
}

// The second needs the first.
TEST(VeryManyColumns, Variances) {
  CheckTextFor(kVeryMany, R"(graph @g(%x: f32[s0, s1]) {
  %0 = sum %x {dims=[0], keepdim=true} : f32[1, s1]
  %1 = tanh %0 : f32[1, s1]
  %2 = expand %1 : f32[s0, s1]
  %3 = sub %x, %2 : f32[s0, s1]
  %4 = mul %3, %3 : f32[s0, s1]
  %5 = sum %4 {dims=[0], keepdim=false} : f32[s1]
  return %5
})",
               kSizes, {1e-5, 1e-4});
}

// So many that shared memory would not hold what several groups have folded: one does a column alone.
TEST(VeryManyColumns, OfManyFolds) {
  CheckTextFor(kVeryMany, ManyFolds(12), {kSizes.begin() + 1, kSizes.end()}, {1e-5, 1e-4});
}

TEST(VeryManyColumns, OfATable) {
  CheckTextFor(kVeryMany, R"(graph @g(%table: f32[7, s1], %index: i64[s0]) {
  %0 = reshape %index : i64[s0, 1]
  %1 = expand %0 : i64[s0, s1]
  %2 = take %table, %1 {dim=0} : f32[s0, s1]
  %3 = sum %2 {dims=[0], keepdim=false} : f32[s1]
  return %3
})",
               kSizes, {1e-5, 1e-4});
}

}  // namespace
}  // namespace torch_lazy::codegen
