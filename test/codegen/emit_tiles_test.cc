// SPDX-License-Identifier: Apache-2.0
// Maps that read or write across memory, which CUDA's kernels do in tiles of 32 times 32.
#include "gtest/gtest.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

const std::vector<std::vector<int64_t>> kSizes = {{1, 1, 1}, {32, 32, 2}, {33, 31, 3}, {0, 5, 2},
                                                  {5, 0, 2}, {1, 100, 2}, {70, 1, 1},  {65, 97, 2}};

TEST(Transposed, Reads) {
  CheckText(R"(graph @g(%x: f32[s0, s1], %y: f32[s1, s0], %z: bf16[s0, s1], %b: f32[s0]) {
  %0 = permute %x {dims=[1, 0]} : f32[s1, s0]
  %1 = cast %z : f32[s0, s1]
  %2 = permute %1 {dims=[1, 0]} : f32[s1, s0]
  %3 = mul %0, %2 : f32[s1, s0]
  %4 = add %3, %y : f32[s1, s0]
  %5 = reshape %b : f32[1, s0]
  %6 = expand %5 : f32[s1, s0]
  %7 = mul %4, %6 : f32[s1, s0]
  return %7
})",
            kSizes, {1e-6, 1e-6});
}

TEST(Transposed, Writes) {
  CheckText(R"(graph @g(%x: f32[s0, s1], %y: f32[s1, s0]) {
  %0 = mul %x, %x : f32[s0, s1]
  %1 = permute %0 {dims=[1, 0]} : f32[s1, s0]
  %2 = add %1, %y : f32[s1, s0]
  return %2, %0
})",
            kSizes, {1e-6, 1e-6});
}

TEST(Transposed, InPlace) {
  CheckText(R"(graph @g(%p: f32[s0, s1], %y: f32[s1, s0]) {
  %0 = permute %y {dims=[1, 0]} : f32[s0, s1]
  %1 = add %p, %0 : f32[s0, s1]
  %2 = permute %1 {dims=[1, 0]} : f32[s1, s0]
  %3 = mul %2, %2 : f32[s1, s0]
  return %1 -> %p, %3 -> %y
})",
            kSizes, {1e-6, 1e-6});
}

// Loops around the tile's, outside and in between.
TEST(Transposed, Batches) {
  CheckText(R"(graph @g(%x: i64[s2, s0, s1], %y: f32[s0, s2, s1], %z: f32[s0, s1, 3]) {
  %0 = permute %x {dims=[0, 2, 1]} : i64[s2, s1, s0]
  %1 = permute %y {dims=[1, 2, 0]} : f32[s2, s1, s0]
  %2 = exp %1 : f32[s2, s1, s0]
  %3 = permute %y {dims=[2, 1, 0]} : f32[s1, s2, s0]
  %4 = neg %3 : f32[s1, s2, s0]
  %5 = permute %z {dims=[2, 0, 1]} : f32[3, s0, s1]
  %6 = tanh %5 : f32[3, s0, s1]
  %7 = neg %0 : i64[s2, s1, s0]
  return %7, %2, %4, %6
})",
            kSizes, {1e-6, 1e-6});
}

// Rows of a table, transposed: what lies at data is read as it is.
TEST(Transposed, Takes) {
  CheckText(R"(graph @g(%table: f32[7, s1], %index: i64[s0], %x: f32[s0, s1]) {
  %0 = reshape %index : i64[s0, 1]
  %1 = expand %0 : i64[s0, s1]
  %2 = take %table, %1 {dim=0} : f32[s0, s1]
  %3 = mul %2, %x : f32[s0, s1]
  %4 = permute %3 {dims=[1, 0]} : f32[s1, s0]
  %5 = exp %4 : f32[s1, s0]
  return %5
})",
            kSizes, {1e-6, 1e-6});
}

}  // namespace
}  // namespace torch_lazy::codegen
