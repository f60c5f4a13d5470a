// SPDX-License-Identifier: Apache-2.0
// Rows that a block does one after the other, some of them in place: as many as a block does, one more, and few.
#include "gtest/gtest.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

constexpr Tolerance kTolerance = {1e-5, 1e-5};
const std::vector<int64_t> kMany = {5120, 4096};  // four rows a block

// Whole vectors or not, kept in registers or too long for that; at last, so many that they take the kernel for 4096
// alone.
std::vector<std::vector<int64_t>> Sizes() {
  return {{0, 4096},  {1, 4096}, {4, 4096}, {5, 4096},  {11, 4096},
          {33, 4095}, {21, 12},  {12, 5},   {12, 5000}, {645, 4096}};
}

TEST(Turns, OfANorm) {
  CheckTextFor(kMany, R"(graph @g(%x: f32[s0, s1], %w: f32[s1], %m: f32[s0, 1]) {
  %0 = expand %m : f32[s0, s1]
  %1 = sub %x, %0 : f32[s0, s1]
  %2 = reshape %w : f32[1, s1]
  %3 = expand %2 : f32[s0, s1]
  %4 = mul %1, %3 : f32[s0, s1]
  %5 = reduce_max %4 {dims=[1], keepdim=true} : f32[s0, 1]
  %6 = expand %5 : f32[s0, s1]
  %7 = sub %4, %6 : f32[s0, s1]
  %8 = exp %7 : f32[s0, s1]
  %9 = sum %8 {dims=[1], keepdim=true} : f32[s0, 1]
  %10 = expand %9 : f32[s0, s1]
  %11 = div %8, %10 : f32[s0, s1]
  return %11, %5 -> %m
})",
               Sizes(), kTolerance);
}

// One fold: the next row's is not mixed with it.
TEST(Turns, OfOneFoldInPlace) {
  CheckTextFor(kMany, R"(graph @g(%x: bf16[s0, s1], %y: f32[s0, s1]) {
  %0 = cast %x : f32[s0, s1]
  %1 = mul %0, %y : f32[s0, s1]
  %2 = sum %1 {dims=[1], keepdim=true} : f32[s0, 1]
  %3 = expand %2 : f32[s0, s1]
  %4 = add %y, %3 : f32[s0, s1]
  %5 = cast %4 : bf16[s0, s1]
  return %4 -> %y, %5 -> %x, %2
})",
               Sizes(), {1e-2, 1e-2});
}

// No fold: the next row does not come before all threads have read theirs.
TEST(Turns, OfARowWhoseThreadsHaveNotMet) {
  CheckTextFor(kMany, R"(graph @g(%x: f32[s0, s1], %class: i64[s0, 1]) {
  %0 = iota {dim=0} : i64[s1]
  %1 = reshape %0 : i64[1, s1]
  %2 = expand %1 : i64[s0, s1]
  %3 = expand %class : i64[s0, s1]
  %4 = eq %2, %3 : bool[s0, s1]
  %5 = const {value=0} : f32[]
  %6 = reshape %5 : f32[1, 1]
  %7 = expand %6 : f32[s0, s1]
  %8 = const {value=2} : f32[]
  %9 = reshape %8 : f32[1, 1]
  %10 = expand %9 : f32[s0, s1]
  %11 = where %4, %10, %7 : f32[s0, s1]
  %12 = sum %11 {dims=[1], keepdim=true} : f32[s0, 1]
  %13 = expand %12 : f32[s0, s1]
  %14 = exp %x : f32[s0, s1]
  %15 = mul %14, %13 : f32[s0, s1]
  return %14, %15
})",
               Sizes(), kTolerance);
}

// Rows at places that are read are read as they come.
TEST(Turns, OfATable) {
  CheckTextFor(kMany, R"(graph @g(%table: f32[7, s1], %index: i64[s0]) {
  %0 = reshape %index : i64[s0, 1]
  %1 = expand %0 : i64[s0, s1]
  %2 = take %table, %1 {dim=0} : f32[s0, s1]
  %3 = reduce_max %2 {dims=[1], keepdim=true} : f32[s0, 1]
  %4 = expand %3 : f32[s0, s1]
  %5 = sub %2, %4 : f32[s0, s1]
  return %5
})",
               Sizes(), kTolerance);
}

// Instances of one launch.
TEST(Turns, OfThreeArrays) {
  CheckTextFor(kMany, R"(graph @g(%x: f32[s0, s1], %y: f32[s0, s1], %z: f32[s0, s1]) {
  %0 = reduce_max %x {dims=[1], keepdim=true} : f32[s0, 1]
  %1 = expand %0 : f32[s0, s1]
  %2 = sub %x, %1 : f32[s0, s1]
  %3 = reduce_max %y {dims=[1], keepdim=true} : f32[s0, 1]
  %4 = expand %3 : f32[s0, s1]
  %5 = sub %y, %4 : f32[s0, s1]
  %6 = reduce_max %z {dims=[1], keepdim=true} : f32[s0, 1]
  %7 = expand %6 : f32[s0, s1]
  %8 = sub %z, %7 : f32[s0, s1]
  return %2, %5, %8
})",
               Sizes(), kTolerance);
}

}  // namespace
}  // namespace torch_lazy::codegen
