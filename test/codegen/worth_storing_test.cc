// SPDX-License-Identifier: Apache-2.0
// What a GPU's kernels read and write: values that several of them need are as small as they can be,
// and not read at all where they follow from what is read anyway.
#include <algorithm>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

constexpr Tolerance kTolerance = {1e-4, 1e-2};
const std::vector<std::vector<int64_t>> kSizes = {{0, 64}, {1, 64}, {259, 64}, {1030, 40}};

// The temporaries of `plan` that have two dims of symbols, by type.
std::vector<ir::DType> LargeTemporaries(const Plan& plan) {
  std::vector<ir::DType> types;
  for (const BufferSpec& buffer : plan.buffers) {
    if (buffer.kind == BufferSpec::Kind::kTemp && buffer.type.dims.size() == 2 && !buffer.type.dims[0].is_constant())
      types.push_back(buffer.type.dtype);
  }
  return types;
}

// How many kernels read or write it.
int Users(const Plan& plan, BufferSpec::Kind kind, int32_t index) {
  int users = 0;
  for (const Step& step : plan.steps) {
    for (const Instance& instance : step.instances) {
      users += std::any_of(instance.buffers.begin(), instance.buffers.end(), [&](int32_t buffer) {
        return plan.buffers[buffer].kind == kind && plan.buffers[buffer].index == index;
      });
    }
  }
  return users;
}

// A sum that is rounded before a column's mean is taken off it.
TEST(Traffic, WhatIsRoundedIsStoredSo) {
  const char* text = R"(graph @g(%x: bf16[s0, s1], %y: bf16[s0, s1], %z: bf16[s0, s1]) {
  %0 = cast %x : f32[s0, s1]
  %1 = cast %y : f32[s0, s1]
  %2 = cast %z : f32[s0, s1]
  %3 = mul %0, %1 : f32[s0, s1]
  %4 = mul %3, %2 : f32[s0, s1]
  %5 = cast %4 : bf16[s0, s1]
  %6 = cast %5 : f32[s0, s1]
  %7 = sum %6 {dims=[0], keepdim=true} : f32[1, s1]
  %8 = expand %7 : f32[s0, s1]
  %9 = sub %6, %8 : f32[s0, s1]
  return %9
})";
  CheckTextFor({200000, 64}, text, kSizes, kTolerance);
  EXPECT_EQ(LargeTemporaries(PlanOf(text, {200000, 64})), std::vector{ir::DType::kBF16});
}

// A ReLU's output, which a call takes, and where it was open, by which the call's result is masked.
constexpr char kRelu[] = R"(graph @g(%x: f32[s0, s1], %w: f32[s1]) {
  %0 = reshape %w : f32[1, s1]
  %1 = expand %0 : f32[s0, s1]
  %2 = mul %x, %1 : f32[s0, s1]
  %3 = const {value=0} : f32[]
  %4 = reshape %3 : f32[1, 1]
  %5 = expand %4 : f32[s0, s1]
  %6 = max %2, %5 : f32[s0, s1]
  %7 = call %6 {callee="clone", index=0, inout=[-1], may_fail=false} : f32[s0, s1]
  %8 = le %6, %5 : bool[s0, s1]
  %9 = where %8, %5, %7 : f32[s0, s1]
  %10 = MUL : f32[s0, s1]
  %11 = sum %10 {dims=[0], keepdim=false} : f32[s1]
  return %6, %11
})";

TEST(Traffic, AReluIsComputedAgainByWhoReadsItsInput) {
  const std::string text = absl::StrReplaceAll(kRelu, {{"MUL", "mul %9, %2"}});
  EXPECT_EQ(Users(PlanOf(text, {200000, 64}), BufferSpec::Kind::kOutput, 0), 1);
}

TEST(Traffic, AReluIsReadByWhoDoesNot) {
  const std::string text = absl::StrReplaceAll(kRelu, {{"MUL", "mul %9, %7"}});
  EXPECT_EQ(Users(PlanOf(text, {200000, 64}), BufferSpec::Kind::kOutput, 0), 2);
}

// Two results of one operand are two kernels where they are large and computed long, and one elsewhere.
TEST(Traffic, LargeChainsStayAlone) {
  const auto kernels_of = [](const std::string& op, int64_t size) {
    const std::string text = absl::StrReplaceAll(R"(graph @g(%x: f32[s0, s0]) {
  %0 = OP %x : f32[s0, s0]
  %1 = mul %0, %x : f32[s0, s0]
  %2 = neg %x : f32[s0, s0]
  %3 = OP %2 : f32[s0, s0]
  %4 = add %3, %x : f32[s0, s0]
  return %1, %4
})",
                                                 {{"OP", op}});
    CheckTextFor({size}, text, {{0}, {1}, {33}}, kTolerance);
    return Users(PlanOf(text, {size}), BufferSpec::Kind::kParam, 0);
  };
  EXPECT_EQ(kernels_of("tanh", 8192), 2);
  EXPECT_EQ(kernels_of("tanh", 2048), 1);
  EXPECT_EQ(kernels_of("abs", 8192), 1);
}

}  // namespace
}  // namespace torch_lazy::codegen
