// SPDX-License-Identifier: Apache-2.0
// Rows that are too long for registers: CUDA's kernels walk over them, with vectors where memory is
// aligned, which rows of odd length are at another element each.
#include "gtest/gtest.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

const std::vector<int64_t> kLong = {512, 50257};
const std::vector<std::vector<int64_t>> kSizes = {{0, 7},  {2, 0},  {1, 1},    {5, 3},    {3, 8},
                                                  {4, 63}, {3, 64}, {5, 4101}, {1, 50257}};

TEST(LongRows, Softmax) {
  CheckTextFor(kLong, R"(graph @g(%x: f32[s0, s1]) {
  %0 = reduce_max %x {dims=[1], keepdim=true} : f32[s0, 1]
  %1 = expand %0 : f32[s0, s1]
  %2 = sub %x, %1 : f32[s0, s1]
  %3 = exp %2 : f32[s0, s1]
  %4 = sum %3 {dims=[1], keepdim=true} : f32[s0, 1]
  %5 = expand %4 : f32[s0, s1]
  %6 = div %3, %5 : f32[s0, s1]
  %7 = argmax %x {dims=[1], keepdim=false} : i64[s0]
  return %6, %7
})",
               {{0, 7}, {1, 1}, {5, 3}, {3, 8}, {4, 63}, {3, 64}, {5, 4101}, {1, 50257}}, {1e-5, 1e-9});
}

// Loads and stores that are aligned together, and those that never are: the sliced one.
TEST(LongRows, OfTwoTypes) {
  CheckTextFor(kLong, R"(graph @g(%x: bf16[s0, s1], %w: f32[s1], %y: f32[s0, s1]) {
  %0 = cast %x : f32[s0, s1]
  %1 = reshape %w : f32[1, s1]
  %2 = expand %1 : f32[s0, s1]
  %3 = mul %0, %2 : f32[s0, s1]
  %4 = sum %3 {dims=[1], keepdim=true} : f32[s0, 1]
  %5 = expand %4 : f32[s0, s1]
  %6 = mul %y, %5 : f32[s0, s1]
  return %6 -> %y, %4
})",
               kSizes, {1e-4, 1e-3});
}

TEST(LongRows, OfHalves) {
  CheckTextFor(kLong, R"(graph @g(%x: bf16[s0, s1]) {
  %0 = cast %x : f32[s0, s1]
  %1 = mul %0, %0 : f32[s0, s1]
  %2 = sum %1 {dims=[1], keepdim=true} : f32[s0, 1]
  %3 = expand %2 : f32[s0, s1]
  %4 = mul %0, %3 : f32[s0, s1]
  %5 = cast %4 : bf16[s0, s1]
  return %5
})",
               kSizes, {1e-2, 1e-2});
}

TEST(LongRows, FromTheirSecondElementOn) {
  CheckTextFor({512, 50257, 50258}, R"(graph @g(%x: f32[s0, s2], %y: f32[s0, s1]) {
  %0 = slice %x {starts=[0, 1], steps=[1, 1]} : f32[s0, s1]
  %1 = mul %0, %y : f32[s0, s1]
  %2 = sum %1 {dims=[1], keepdim=true} : f32[s0, 1]
  %3 = expand %2 : f32[s0, s1]
  %4 = mul %0, %3 : f32[s0, s1]
  return %4
})",
               {{1, 1, 2}, {3, 8, 9}, {5, 4101, 4102}, {3, 64, 65}, {2, 63, 70}}, {1e-4, 1e-4});
}

// The row of a table, which is data, is not asked for its alignment.
TEST(LongRows, OfATable) {
  CheckTextFor(kLong, R"(graph @g(%table: f32[7, s1], %index: i64[s0]) {
  %0 = reshape %index : i64[s0, 1]
  %1 = expand %0 : i64[s0, s1]
  %2 = take %table, %1 {dim=0} : f32[s0, s1]
  %3 = sum %2 {dims=[1], keepdim=true} : f32[s0, 1]
  %4 = expand %3 : f32[s0, s1]
  %5 = mul %2, %4 : f32[s0, s1]
  return %5
})",
               kSizes, {1e-4, 1e-3});
}

}  // namespace
}  // namespace torch_lazy::codegen
