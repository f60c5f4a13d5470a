// SPDX-License-Identifier: Apache-2.0
// Sums down many rows beside what is computed along them, for rows of all widths: some lanes of a
// warp, a warp or a block do one, and several at once.
#include "gtest/gtest.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

constexpr Tolerance kTolerance = {1e-5, 2e-3};
constexpr int64_t kManyRows = 200000;

// What a share is of: none, fewer rows than shares, one more than some at once, many.
std::vector<std::vector<int64_t>> SizesOf(int64_t columns) {
  return {{0, columns}, {1, columns}, {259, columns}, {2561, columns}};
}

class Shares : public testing::TestWithParam<int64_t> {};

TEST_P(Shares, OfWhatIsWrittenInPlace) {
  const int64_t columns = GetParam();
  CheckTextFor({kManyRows, columns}, R"(graph @g(%x: bf16[s0, s1], %w: f32[s1]) {
  %0 = cast %x : f32[s0, s1]
  %1 = reshape %w : f32[1, s1]
  %2 = expand %1 : f32[s0, s1]
  %3 = mul %0, %2 : f32[s0, s1]
  %4 = sum %3 {dims=[0], keepdim=false} : f32[s1]
  %5 = sum %0 {dims=[0], keepdim=true} : f32[1, s1]
  %6 = cast %3 : bf16[s0, s1]
  return %6 -> %x, %4, %5
})",
               SizesOf(columns), kTolerance);
}

// A row's numbers are needed along it, and stored.
TEST_P(Shares, OfRowsThatAreFolded) {
  const int64_t columns = GetParam();
  CheckTextFor({kManyRows, columns}, R"(graph @g(%x: f32[s0, s1], %r: f32[s0, 1]) {
  %0 = sum %x {dims=[1], keepdim=true} : f32[s0, 1]
  %1 = reduce_max %x {dims=[1], keepdim=true} : f32[s0, 1]
  %2 = add %0, %r : f32[s0, 1]
  %3 = expand %2 : f32[s0, s1]
  %4 = expand %1 : f32[s0, s1]
  %5 = sub %x, %4 : f32[s0, s1]
  %6 = exp %5 : f32[s0, s1]
  %7 = sum %6 {dims=[1], keepdim=true} : f32[s0, 1]
  %8 = expand %7 : f32[s0, s1]
  %9 = div %6, %8 : f32[s0, s1]
  %10 = add %9, %3 : f32[s0, s1]
  %11 = sum %10 {dims=[0], keepdim=false} : f32[s1]
  %12 = sum %9 {dims=[0], keepdim=false} : f32[s1]
  return %10, %11, %12, %2 -> %r
})",
               SizesOf(columns), kTolerance);
}

// The rows lie in a table, at places that are read.
TEST_P(Shares, OfATable) {
  const int64_t columns = GetParam();
  CheckTextFor({kManyRows, columns}, R"(graph @g(%table: f32[7, s1], %index: i64[s0]) {
  %0 = reshape %index : i64[s0, 1]
  %1 = expand %0 : i64[s0, s1]
  %3 = take %table, %1 {dim=0} : f32[s0, s1]
  %4 = reduce_max %3 {dims=[1], keepdim=true} : f32[s0, 1]
  %5 = expand %4 : f32[s0, s1]
  %6 = mul %3, %5 : f32[s0, s1]
  %7 = sum %6 {dims=[0], keepdim=false} : f32[s1]
  return %6, %7
})",
               SizesOf(columns), kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Columns, Shares, testing::Values(32, 40, 64, 100, 128, 192, 256, 768, 1030),
                         testing::PrintToStringParamName());

// A batch norm's sums, and a softmax down the columns: numbers of a column and of a row, two stages, results in memory.
TEST(Columns, VectorsHoldRowsOfFewColumns) {
  const char* const text = R"(graph @g(%x: f32[s0, s1, s2], %w: f32[s2], %v: f32[s0, s1, 1], $a: f64) {
  %0 = reshape %w : f32[1, 1, s2]
  %1 = expand %0 : f32[s0, s1, s2]
  %2 = exp %1 : f32[s0, s1, s2]
  %3 = mul %x, %2 : f32[s0, s1, s2]
  %4 = expand %v : f32[s0, s1, s2]
  %5 = add %3, %4 : f32[s0, s1, s2]
  %6 = sum %5 {dims=[1], keepdim=true} : f32[s0, 1, s2]
  %7 = reduce_max %5 {dims=[1], keepdim=true} : f32[s0, 1, s2]
  %8 = expand %7 : f32[s0, s1, s2]
  %9 = sub %5, %8 : f32[s0, s1, s2]
  %10 = exp %9 : f32[s0, s1, s2]
  %11 = sum %10 {dims=[1], keepdim=true} : f32[s0, 1, s2]
  %12 = expand %11 : f32[s0, s1, s2]
  %13 = div %10, %12 : f32[s0, s1, s2]
  return %6, %13
})";
  const std::vector<std::vector<int64_t>> sizes = {{3, 200, 8}, {5, 1000, 3}, {2, 9000, 24}, {40, 7, 32}, {3, 1, 5},
                                                   {2, 50, 33}, {3, 40, 100}, {4, 60, 1},    {0, 8, 8},   {3, 0, 8}};
  for (const int64_t columns : {1, 3, 8, 24, 32}) {
    CheckTextFor({3, 200, columns}, text, sizes, {1e-5, 1e-4});
  }
  if (OptionsFor({}).target != Target::kCpu) return;
  const auto holds_rows = [&](int64_t columns) { return HasText(PlanOf(text, {3, 200, columns}), "c0[column_of[l]]"); };
  EXPECT_TRUE(holds_rows(8) && holds_rows(32));
  EXPECT_FALSE(holds_rows(33));
}

}  // namespace
}  // namespace torch_lazy::codegen
