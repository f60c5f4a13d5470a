// SPDX-License-Identifier: Apache-2.0
// What a bound plan launches, where it leaves results, and what a failure leaves behind.
#include "lazy/run/bound_plan.h"

#include <cstring>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "base/flags.h"
#include "base/metrics.h"
#include "ir/parse.h"
#include "lazy/eager/memory.h"
#include "lazy/libraries/product_threads.h"
#include "test/lazy/fake_backend.h"

namespace torch_lazy::lazy {
namespace {

using backends::Fake;
using backends::Launched;
using Values = std::vector<float>;

template <class Number>
c10::Storage Content(const std::vector<Number>& values) {
  c10::Storage content = NewContent(values.size() * sizeof(Number));
  std::memcpy(content.mutable_data(), values.data(), values.size() * sizeof(Number));
  return content;
}

Values ValuesIn(const c10::Storage& content) {
  const auto* values = static_cast<const float*>(content.data());
  return {values, values + content.nbytes() / sizeof(float)};
}

Geometry Vector(int64_t size, at::ScalarType dtype) { return {.dtype = dtype, .sizes = {size}, .strides = {1}}; }

const char kSquare[] = R"(graph @square(%x: f32[s0]) {
  %0 = mul %x, %x : f32[s0]
  return %0
})";

// The call reads what the kernel before it has written in place.
const char kUpdateThenGather[] = R"(graph @update_then_gather(%x: f32[s0], %index: i64[s0]) {
  %0 = mul %x, %x : f32[s0]
  %1 = call %0, %index {callee="aten::gather", index=0, inout=[-1], may_fail=true} : f32[s0]
  return %0 -> %x, %1
})";

const char kGatherThenUpdate[] = R"(graph @gather_then_update(%x: f32[s0], %index: i64[s0]) {
  %0 = call %x, %index {callee="aten::gather", index=0, inout=[-1], may_fail=true} : f32[s0]
  %1 = mul %0, %0 : f32[s0]
  return %1
})";

// Slots are the graph's parameters, then its outputs that have a buffer of their own.
class BoundPlans : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(base::SetOption("compile", "sync").ok());
    Fake().Reset();
  }
  void TearDown() override {
    Fake().Reset();
    ASSERT_TRUE(base::SetOption("compile", "async").ok());
  }

  void Bind(const char* text, std::vector<int64_t> symbols) {
    lowered_.graph = *ir::Parse(text);
    lowered_.symbols = std::move(symbols);
    const int32_t num_params = static_cast<int32_t>(trace_.slots.size());
    for (int32_t k = 0; k < num_params; ++k) lowered_.param_slots.push_back(k);
    for (const ir::Output& output : lowered_.graph.outputs) {
      lowered_.output_slots.push_back(output.into >= 0 ? output.into : static_cast<int32_t>(trace_.slots.size()));
      if (output.into < 0) trace_.slots.emplace_back();
    }
    calls_ = std::make_unique<CallSequence>(end_, std::vector<bool>(trace_.slots.size(), true));
    planned_ = std::make_shared<PlannedGraph>(std::move(lowered_.graph), /*deterministic=*/false, /*trace_text=*/"");
    ASSERT_TRUE(planned_->Want(lowered_.symbols, 1));
    plan_ = std::make_unique<BoundPlan>(*calls_, lowered_, *planned_);
  }

  // The trace's next slot holds this.
  template <class Number>
  void Param(const std::vector<Number>& values) {
    trace_.slots.emplace_back();
    trace_.slots.back().content = Content(values);
  }

  // gather(slot 0, dim 0, slot 1) -> slot 2
  void AppendGather(int64_t size) {
    const Op& op = OpOf(c10::Dispatcher::singleton().findSchemaOrThrow("aten::gather", ""));
    auto shape = std::make_shared<CallShape>();
    shape->list_sizes = {-1};
    shape->results.emplace_back();
    shape->results[0].geometry = Vector(size, at::kFloat);
    shape->results[0].size_bytes = static_cast<size_t>(size) * sizeof(float);
    TrieNode* const call = end_->Grow(op, {1}, {0, 1}, std::move(shape), 0);
    call->operands = {{0, -1, 0, false, Vector(size, at::kFloat)}, {1, -1, 2, false, Vector(size, at::kLong)}};
    call->args = {c10::IValue(), 0, c10::IValue(), false};
    call->first_result_slot = 2;
    end_ = call;
  }

  const c10::Storage& content(size_t slot) const { return trace_.slots[slot].content; }

  Trie trie_;
  TrieNode* end_ = trie_.root();
  Trace trace_;
  LoweredTrace lowered_;
  std::unique_ptr<CallSequence> calls_;
  std::shared_ptr<PlannedGraph> planned_;
  std::unique_ptr<BoundPlan> plan_;
};

// Kernels of the graphs above: the last buffer becomes the square of the first.
absl::Status Square(const Launched& launched) {
  const auto* x = static_cast<const float*>(launched.buffers.front());
  auto* y = static_cast<float*>(launched.buffers.back());
  for (int64_t k = 0; k < launched.iterations; ++k) y[k] = x[k] * x[k];
  return absl::OkStatus();
}

TEST_F(BoundPlans, OutputsAreLeftInTheTracesSlots) {
  Fake().launch = Square;
  Param(Values{1, 2, 3});
  const void* const x = content(0).data();
  Bind(kSquare, {3});
  EXPECT_TRUE(plan_->Run(&trace_));
  EXPECT_EQ(ValuesIn(content(1)), (Values{1, 4, 9}));
  ASSERT_EQ(Fake().launched().size(), 1);
  const Launched launched = Fake().launched()[0];
  EXPECT_EQ(launched.kernel, plan_->plan().kernels[0].name);
  EXPECT_EQ(launched.buffers, (std::vector<void*>{const_cast<void*>(x), content(1).mutable_data()}));
  EXPECT_EQ(launched.iterations, 3);
}

TEST_F(BoundPlans, EachRunHasItsOwnContents) {
  Param(Values{1, 2});
  Bind(kSquare, {2});
  Fake().Reset();
  Fake().launch = Square;
  EXPECT_TRUE(plan_->Run(&trace_));
  const c10::Storage first = content(1);
  trace_.slots[0].content = Content(Values{5, 6});
  trace_.slots[1].content = c10::Storage();
  EXPECT_TRUE(plan_->Run(&trace_));
  EXPECT_EQ(ValuesIn(first), (Values{1, 4}));
  EXPECT_EQ(ValuesIn(content(1)), (Values{25, 36}));
  EXPECT_EQ(Fake().num_compiles(), 0);
}

TEST_F(BoundPlans, OfNoElementsNothingIsLaunched) {
  Param(Values{});
  Bind(kSquare, {0});
  EXPECT_TRUE(plan_->Run(&trace_));
  EXPECT_EQ(Fake().num_launches(), 0);
}

TEST_F(BoundPlans, AnOutputMayTakeAParametersMemory) {
  Fake().launch = Square;
  Param(Values{1, 2, 3});
  const void* const x = content(0).data();
  Bind(R"(graph @in_place(%x: f32[s0]) {
  %0 = mul %x, %x : f32[s0]
  return %0 -> %x
})",
       {3});
  EXPECT_TRUE(plan_->Run(&trace_));
  EXPECT_EQ(content(0).data(), x);
  EXPECT_EQ(ValuesIn(content(0)), (Values{1, 4, 9}));
}

TEST_F(BoundPlans, NumbersAreThoseOfTheRun) {
  Param(Values{1, 2});
  lowered_.numbers = {{.place = 1, .item = -1, .integer = false}, {.place = 0, .item = -1, .integer = false}};
  Bind(R"(graph @numbers(%x: f32[s0], $a: f64, $b: f64) {
  %0 = cast $a : f32[]
  %1 = reshape %0 : f32[1]
  %2 = expand %1 : f32[s0]
  %3 = mul %x, %2 : f32[s0]
  %4 = cast $b : f32[]
  %5 = reshape %4 : f32[1]
  %6 = expand %5 : f32[s0]
  %7 = add %3, %6 : f32[s0]
  return %7
})",
       {2});
  for (const double step : {0.0, 1.0}) {
    trace_.numbers = {3.5 + step, 7.25 + step};
    EXPECT_TRUE(plan_->Run(&trace_));
    EXPECT_EQ(Fake().launched().back().scalars, (std::vector<double>{7.25 + step, 3.5 + step}));
    trace_.slots[0].content = Content(Values{1, 2});
  }
  EXPECT_EQ(plan_->ScalarsOfLaunches({1, 2}), (std::vector<double>{1, 2}));
}

// The program may have dropped it, and later steps want the memory.
TEST_F(BoundPlans, AParameterIsLetGoAfterItsLastRead) {
  Param(Values{1, 2, 3});
  const c10::Storage x = content(0);
  Bind(kSquare, {3});
  EXPECT_TRUE(plan_->Run(&trace_));
  EXPECT_EQ(x.use_count(), 1);
}

TEST_F(BoundPlans, TemporariesAreGivenBackAfterTheirLastUse) {
  AppendGather(3);
  Param(Values{1, 2, 3});
  Param(std::vector<int64_t>{2, 1, 0});
  // Parameter, index and two of three temporaries are there at a time.
  Bind(R"(graph @chain(%x: f32[s0], %index: i64[s0]) {
  %0 = call %x, %index {callee="aten::gather", index=0, inout=[-1], may_fail=false} : f32[s0]
  %1 = call %0, %index {callee="aten::gather", index=0, inout=[-1], may_fail=false} : f32[s0]
  %2 = call %1, %index {callee="aten::gather", index=0, inout=[-1], may_fail=false} : f32[s0]
  return %2
})",
       {3});
  EXPECT_EQ(plan_->PeakBytes(), 3 * 4 + 3 * 8 + 2 * 3 * 4);
  EXPECT_TRUE(plan_->Run(&trace_));
  EXPECT_EQ(ValuesIn(content(2)), (Values{3, 2, 1}));
}

TEST_F(BoundPlans, CallsAreRunByAten) {
  Fake().launch = Square;
  AppendGather(3);
  Param(Values{1, 2, 3});
  Param(std::vector<int64_t>{2, 2, 0});
  Bind(kUpdateThenGather, {3});
  const int64_t calls = base::Get(base::Counter::kLibraryCalls);
  EXPECT_TRUE(plan_->Run(&trace_));
  EXPECT_EQ(ValuesIn(content(0)), (Values{1, 4, 9}));
  EXPECT_EQ(ValuesIn(content(2)), (Values{9, 9, 1}));
  EXPECT_EQ(base::Get(base::Counter::kLibraryCalls), calls + 1);
}

TEST_F(BoundPlans, WhereNothingComputesNeitherDoesAten) {
  Fake().does_compute = false;
  AppendGather(2);
  Param(Values{1, 2});
  Param(std::vector<int64_t>{7, 7});  // ATen would refuse it
  Bind(kUpdateThenGather, {2});
  EXPECT_TRUE(plan_->Run(&trace_));
}

// The kernel has overwritten the parameter when the call fails.
TEST_F(BoundPlans, AFailedCallLeavesTheSlotsAsTheyWere) {
  Fake().launch = Square;
  AppendGather(3);
  Param(Values{1, 2, 3});
  Param(std::vector<int64_t>{2, 7, 0});
  const c10::Storage x = content(0), index = content(1);
  Bind(kUpdateThenGather, {3});
  EXPECT_FALSE(plan_->Run(&trace_));
  EXPECT_EQ(Fake().num_launches(), 1);
  EXPECT_EQ(content(0).data(), x.data());
  EXPECT_EQ(ValuesIn(content(0)), (Values{1, 2, 3}));
  EXPECT_EQ(content(1).data(), index.data());
  EXPECT_FALSE(content(2));
}

TEST_F(BoundPlans, WhatACallThatSucceedsHasOverwrittenStays) {
  Fake().launch = Square;
  AppendGather(3);
  Param(Values{1, 2, 3});
  Param(std::vector<int64_t>{0, 1, 2});
  Bind(kUpdateThenGather, {3});
  EXPECT_TRUE(plan_->Run(&trace_));
  EXPECT_EQ(ValuesIn(content(0)), (Values{1, 4, 9}));
}

// Until the call has run, the interpreter may want the parameters.
TEST_F(BoundPlans, WhileACallMayFailParametersAreKept) {
  AppendGather(3);
  Param(Values{1, 2, 3});
  Param(std::vector<int64_t>{2, 7, 0});
  const c10::Storage x = content(0);
  Bind(kGatherThenUpdate, {3});
  EXPECT_FALSE(plan_->Run(&trace_));
  EXPECT_EQ(content(0).data(), x.data());
  EXPECT_EQ(Fake().num_launches(), 0);
}

TEST_F(BoundPlans, ALaunchThatFailsBeforeAnyWriteIsUndone) {
  Fake().launch = [](const Launched&) { return absl::InternalError("the machine is gone"); };
  Param(Values{1, 2, 3});
  const c10::Storage x = content(0);
  Bind(kSquare, {3});
  EXPECT_FALSE(plan_->Run(&trace_));
  EXPECT_EQ(content(0).data(), x.data());
  EXPECT_FALSE(content(1));
}

TEST_F(BoundPlans, WhatCannotBeUndoneIsRaised) {
  Fake().launch = [](const Launched&) { return absl::InternalError("the machine is gone"); };
  Param(Values{1, 2, 3});
  Bind(R"(graph @in_place(%x: f32[s0]) {
  %0 = mul %x, %x : f32[s0]
  return %0 -> %x
})",
       {3});
  EXPECT_ANY_THROW(plan_->Run(&trace_));
  EXPECT_TRUE(content(0));
}

TEST_F(BoundPlans, AShortPlanOfKernelsRunsAhead) {
  if (!CanLimitProductThreads()) GTEST_SKIP() << "the library of products takes no number of threads here";
  AppendGather(3);  // a call that takes as long to record
  Param(Values{1, 2, 3});
  Bind(kSquare, {3});
  EXPECT_TRUE(plan_->runs_ahead());
}

TEST_F(BoundPlans, ALongOneDoesNot) {
  AppendGather(3);
  Param(Values{1, 2, 3});
  Bind(kSquare, {int64_t{1} << 24});
  EXPECT_FALSE(plan_->runs_ahead());
}

TEST_F(BoundPlans, OneWithACallDoesNot) {
  AppendGather(3);
  Param(Values{1, 2, 3});
  Param(std::vector<int64_t>{0, 1, 2});
  Bind(kUpdateThenGather, {3});
  EXPECT_FALSE(plan_->runs_ahead());
}

int NumThreads() {
  int count = 0;
  for ([[maybe_unused]] const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

// A second team in a process makes every region of it dearer, and traces run on any thread of the program.
TEST_F(BoundPlans, ASmallProductMakesNoTeam) {
  if (!CanLimitProductThreads()) GTEST_SKIP() << "the library of products takes no number of threads here";
  constexpr int64_t kSize = 64;
  Param(Values(kSize * kSize, 1));
  Param(Values(kSize * kSize, 2));
  Bind(R"(graph @product(%x: f32[s0, s0], %y: f32[s0, s0]) {
  %0 = matmul %x, %y : f32[s0, s0]
  return %0
})",
       {kSize});
  ASSERT_FALSE(plan_->runs_ahead());
  int before = 0, after = 0;
  std::thread([&] {
    before = NumThreads();
    EXPECT_TRUE(plan_->Run(&trace_));
    after = NumThreads();
  }).join();
  EXPECT_LE(after, before);
  EXPECT_EQ(ValuesIn(content(2)), Values(kSize * kSize, 2 * kSize));
}

TEST_F(BoundPlans, OneOfNoKnownLengthOfRowsSharesNoLaunches) {
  Param(Values{1, 2, 3});
  Bind(kSquare, {3});
  EXPECT_FALSE(plan_->shares_launches());
}

}  // namespace
}  // namespace torch_lazy::lazy
