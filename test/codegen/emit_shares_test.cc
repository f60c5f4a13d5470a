// SPDX-License-Identifier: Apache-2.0
// Sums with few results, which CUDA's kernels make in shares, from many numbers and from few.
#include "gtest/gtest.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

constexpr Tolerance kTolerance = {1e-5, 1e-4};

TEST(FewResults, SumOfAll) {
  CheckTextFor({1 << 20}, R"(graph @g(%x: f32[s0]) {
  %0 = exp %x : f32[s0]
  %1 = mul %x, %x : f32[s0]
  %2 = sum %1 {dims=[0], keepdim=false} : f32[]
  %3 = sum %0 {dims=[0], keepdim=true} : f32[1]
  return %0, %2, %3
})",
               {{0}, {1}, {3}, {255}, {1003}, {40000}, {70001}}, kTolerance);
}

TEST(FewResults, SumOfDoubles) {
  CheckTextFor({1 << 20}, R"(graph @g(%x: f64[s0]) {
  %0 = sum %x {dims=[0], keepdim=false} : f64[]
  return %0
})",
               {{0}, {1}, {1003}, {40000}}, {1e-12, 1e-12});
}

TEST(FewResults, SumsOfLongRows) {
  CheckTextFor({8, 1 << 20}, R"(graph @g(%x: f32[s0, s1], %y: f32[s0, 1]) {
  %0 = expand %y : f32[s0, s1]
  %1 = mul %x, %0 : f32[s0, s1]
  %2 = sum %1 {dims=[1], keepdim=false} : f32[s0]
  %3 = sum %x {dims=[0, 1], keepdim=false} : f32[]
  return %1, %2, %3
})",
               {{0, 5}, {5, 0}, {1, 1}, {7, 1003}, {300, 2}, {3, 20000}}, kTolerance);
}

// Read across memory: the loops are two.
TEST(FewResults, SumOfATransposed) {
  CheckTextFor({2048, 2048}, R"(graph @g(%x: f32[s0, s1], %y: f32[s1, s0]) {
  %0 = permute %x {dims=[1, 0]} : f32[s1, s0]
  %1 = mul %0, %y : f32[s1, s0]
  %2 = reshape %1 : f32[s2]
  %3 = sum %2 {dims=[0], keepdim=false} : f32[]
  return %3
})",
               {{3, 5, 15}, {64, 33, 2112}, {0, 4, 0}}, kTolerance);
}

TEST(FewResults, SumsOfFewColumns) {
  const char* text = R"(graph @g(%x: f32[s0, s1], %b: f32[s1]) {
  %0 = reshape %b : f32[1, s1]
  %1 = expand %0 : f32[s0, s1]
  %2 = mul %x, %1 : f32[s0, s1]
  %3 = sum %2 {dims=[0], keepdim=false} : f32[s1]
  %4 = sum %x {dims=[0], keepdim=true} : f32[1, s1]
  return %2, %3, %4
})";
  CheckTextFor({1 << 20, 8}, text,
               {{0, 8}, {8, 0}, {1, 1}, {3, 8}, {5000, 8}, {1003, 7}, {300, 31}, {300, 65}, {9, 1000}}, kTolerance);
  CheckTextFor({1 << 20, 1}, text, {{0, 1}, {1, 1}, {70001, 1}, {100, 2}}, kTolerance);
}

TEST(FewResults, OtherReductions) {
  CheckTextFor({1 << 20}, R"(graph @g(%x: f32[s0], %i: i64[s0], %b: bool[s0], %h: bf16[s0]) {
  %0 = reduce_max %x {dims=[0], keepdim=false} : f32[]
  %1 = reduce_min %x {dims=[0], keepdim=false} : f32[]
  %2 = sum %i {dims=[0], keepdim=false} : i64[]
  %3 = any %b {dims=[0], keepdim=false} : bool[]
  %4 = all %b {dims=[0], keepdim=false} : bool[]
  %5 = reduce_min %i {dims=[0], keepdim=false} : i64[]
  %6 = cast %h : f32[s0]
  %7 = reduce_max %6 {dims=[0], keepdim=false} : f32[]
  %8 = log %x : f32[s0]
  %9 = reduce_max %8 {dims=[0], keepdim=false} : f32[]
  return %0, %1, %2, %3, %4, %5, %7, %9
})",
               {{0}, {1}, {3}, {1003}, {40000}}, kTolerance);
}

TEST(FewResults, OtherReductionsOfColumns) {
  const char* text = R"(graph @g(%x: f32[s0, s1], %i: i64[s0, s1], %b: bool[s0, s1]) {
  %0 = reduce_max %x {dims=[0], keepdim=false} : f32[s1]
  %1 = reduce_min %i {dims=[0], keepdim=false} : i64[s1]
  %2 = sum %i {dims=[0], keepdim=true} : i64[1, s1]
  %3 = all %b {dims=[0], keepdim=false} : bool[s1]
  return %0, %1, %2, %3
})";
  for (const int64_t columns : {4, 100})
    CheckTextFor({1 << 20, columns}, text, {{0, 4}, {1, 1}, {1003, 4}, {300, 33}, {70, 100}}, kTolerance);
}

// A reduction is needed before another begins.
TEST(FewResults, Variance) {
  CheckTextFor({1 << 20}, R"(graph @g(%x: f32[s0]) {
  %0 = sum %x {dims=[0], keepdim=true} : f32[1]
  %1 = tanh %0 : f32[1]
  %2 = expand %1 : f32[s0]
  %3 = sub %x, %2 : f32[s0]
  %4 = mul %3, %3 : f32[s0]
  %5 = sum %4 {dims=[0], keepdim=false} : f32[]
  return %5, %1
})",
               {{1}, {1003}, {40000}}, kTolerance);
}

}  // namespace
}  // namespace torch_lazy::codegen
