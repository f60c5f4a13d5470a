// SPDX-License-Identifier: Apache-2.0
// Maps over channels that lie side by side: what is a channel's is read once for some rows.
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

const std::vector<int64_t> kMany = {1000000, 64};
// Fewer rows than a thread does, one more, and widths that no vector fits.
const std::vector<std::vector<int64_t>> kSizes = {{0, 64},    {1, 64},   {3, 64}, {5, 4096},
                                                  {1027, 64}, {257, 24}, {33, 31}};

class Channels : public testing::TestWithParam<const char*> {};

TEST_P(Channels, AreScaledAndShifted) {
  CheckTextFor(kMany,
               absl::StrReplaceAll(R"(graph @g(%x: TYPE[s0, s1], %w: f32[s1], %b: f32[s1], %r: f32[s0, 1]) {
  %0 = cast %x : f32[s0, s1]
  %1 = reshape %w : f32[1, s1]
  %2 = expand %1 : f32[s0, s1]
  %3 = mul %0, %2 : f32[s0, s1]
  %4 = reshape %b : f32[1, s1]
  %5 = expand %4 : f32[s0, s1]
  %6 = add %3, %5 : f32[s0, s1]
  %7 = expand %r : f32[s0, s1]
  %8 = add %6, %7 : f32[s0, s1]
  %9 = cast %8 : TYPE[s0, s1]
  %10 = cast %9 : f32[s0, s1]
  %11 = abs %10 : f32[s0, s1]
  %12 = cast %11 : TYPE[s0, s1]
  return %12, %6
})",
                                   {{"TYPE", GetParam()}}),
               kSizes, {1e-6, 1e-6});
}

TEST_P(Channels, AreScaledInPlace) {
  CheckTextFor(kMany,
               absl::StrReplaceAll(R"(graph @g(%x: TYPE[s0, s1], %y: TYPE[s0, s1], %w: f32[s1], $k: f64) {
  %0 = cast %x : f32[s0, s1]
  %1 = cast %y : f32[s0, s1]
  %2 = reshape %w : f32[1, s1]
  %3 = expand %2 : f32[s0, s1]
  %4 = mul %0, %3 : f32[s0, s1]
  %5 = add %4, %1 : f32[s0, s1]
  %6 = cast $k : f32[]
  %7 = reshape %6 : f32[1, 1]
  %8 = expand %7 : f32[s0, s1]
  %9 = mul %5, %8 : f32[s0, s1]
  %10 = cast %9 : TYPE[s0, s1]
  %11 = cast %5 : TYPE[s0, s1]
  return %10 -> %x, %11 -> %y
})",
                                   {{"TYPE", GetParam()}}),
               kSizes, {1e-6, 1e-6});
}

INSTANTIATE_TEST_SUITE_P(DTypes, Channels, testing::Values("bf16", "f16", "f32"),
                         [](const auto& info) { return std::string(info.param); });

// The rows are those that an index names.
TEST(ChannelsOfATable, AreScaled) {
  CheckTextFor(kMany, R"(graph @g(%table: bf16[7, s1], %index: i64[s0], %w: f32[s1], %x: bf16[s0, s1]) {
  %0 = reshape %index : i64[s0, 1]
  %1 = expand %0 : i64[s0, s1]
  %2 = take %table, %1 {dim=0} : bf16[s0, s1]
  %3 = cast %2 : f32[s0, s1]
  %4 = reshape %w : f32[1, s1]
  %5 = expand %4 : f32[s0, s1]
  %6 = mul %3, %5 : f32[s0, s1]
  %7 = cast %x : f32[s0, s1]
  %8 = add %6, %7 : f32[s0, s1]
  return %8
})",
               kSizes, {1e-6, 1e-6});
}

// What is written lies across.
TEST(ChannelsAcross, AreScaledAndTransposed) {
  CheckTextFor({1000000, 24}, R"(graph @g(%x: f32[s0, s1], %w: f32[s1]) {
  %0 = reshape %w : f32[1, s1]
  %1 = expand %0 : f32[s0, s1]
  %2 = mul %x, %1 : f32[s0, s1]
  %3 = permute %2 {dims=[1, 0]} : f32[s1, s0]
  return %3, %2
})",
               kSizes);
}

}  // namespace
}  // namespace torch_lazy::codegen
