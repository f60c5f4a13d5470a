// SPDX-License-Identifier: Apache-2.0
// Where a trace is cut into parts, and what their runs leave behind. ATen runs the calls, so values are exact.
#include "lazy/cuts/segments.h"

#include <algorithm>

#include "base/metrics.h"
#include "lazy/cuts/cut.h"
#include "lazy/trace/storage.h"
#include "lazy/trace/thread_trace.h"
#include "test/lazy/recording.h"

namespace torch_lazy::lazy {
namespace {

using Cuts = std::vector<size_t>;
using Values = std::vector<float>;

Cuts PartsOfPending() {
  Locked lock(DeviceLock());
  return PartsOf(*ThreadTrace());
}

// The child that calls `op` on these slots; null if there is none.
const TrieNode* ChildOf(const TrieNode* parent, const char* op, const std::vector<int32_t>& slots) {
  Locked lock(DeviceLock());
  for (const auto& [hash, nodes] : parent->children) {
    for (const TrieNode* node : nodes) {
      if (node->op->name == op && node->operand_slots() == slots) return node;
    }
  }
  return nullptr;
}
const TrieNode* FirstCall(const char* op, const std::vector<int32_t>& slots) {
  return ChildOf(CurrentTrie()->root(), op, slots);
}

class Segments : public RecordingTest {
 protected:
  // So many calls that update nothing, and whose results nobody keeps.
  void Compute(size_t calls) {
    for (size_t k = 0; k < calls; ++k) const at::Tensor y = Mul(gradient_, gradient_);
  }

  const at::Tensor weight_ = Holding(Values{1, 2}), gradient_ = Holding(Values{10, 20});
};

TEST_F(Segments, NoCallsAreOnePart) { EXPECT_EQ(PartsOfPending(), (Cuts{0, 0})); }

TEST_F(Segments, WithoutUpdatesATraceIsOnePart) {
  const at::Tensor y = Add(Mul(weight_, weight_), weight_);
  EXPECT_EQ(PartsOfPending(), (Cuts{0, 2}));
}

TEST_F(Segments, AfterTheLastUpdateTheNextStepBegins) {
  AddInPlace(weight_, gradient_);
  AddInPlace(gradient_, weight_);
  const at::Tensor y = Add(Mul(weight_, gradient_), weight_);
  EXPECT_EQ(PartsOfPending(), (Cuts{0, 2, 4}));
}

TEST_F(Segments, AnUpdateMayBeLast) {
  const at::Tensor y = Mul(weight_, weight_);
  AddInPlace(weight_, y);
  EXPECT_EQ(PartsOfPending(), (Cuts{0, 2}));
}

// It was, so often that a wait between the parts is known.
TEST_F(Segments, AShortPartIsNotRunApartForEver) {
  constexpr size_t kMany = 32;
  for (const bool is_short : {true, false}) {
    AddInPlace(weight_, gradient_);
    Compute(kMany - 1);
    AddInPlace(weight_, gradient_);
    Compute(is_short ? 1 : kMany);
    const size_t n = kMany + 1 + (is_short ? 1 : kMany);
    for (int k = 0; k < kMostShortParts; ++k) EXPECT_EQ(PartsOfPending(), (Cuts{0, kMany + 1, n}));
    EXPECT_EQ(PartsOfPending(), is_short ? (Cuts{0, n}) : (Cuts{0, kMany + 1, n}));
    CutThreadTrace("test");
  }
}

TEST_F(Segments, AShortPartBehindACopyIsNotRunApart) {
  const Op& copy = OpNamed("aten::copy_");
  Record(copy, {weight_, gradient_, false});  // learns its shape
  CutThreadTrace("test");
  const at::Tensor y = Mul(weight_, weight_);
  Record(copy, {weight_, gradient_, false});
  Compute(1);
  EXPECT_EQ(PartsOfPending(), (Cuts{0, 3}));
}

// What the step has made itself is no parameter: its reader belongs to the step.
TEST_F(Segments, WhatFollowsAnUpdateReadsOlderStoragesAlone) {
  const at::Tensor y = Mul(weight_, weight_);
  AddInPlace(weight_, y);
  const at::Tensor z = Add(y, weight_);
  EXPECT_EQ(PartsOfPending(), (Cuts{0, 3}));
}

TEST_F(Segments, AWriteToAResultIsNoUpdate) {
  const at::Tensor y = Mul(weight_, weight_);
  AddInPlace(y, y);
  const at::Tensor z = Mul(weight_, weight_);
  EXPECT_EQ(PartsOfPending(), (Cuts{0, 3}));
}

TEST_F(Segments, TwoStepsAreCutApart) {
  const at::Tensor before = Mul(weight_, weight_);
  for (int call = 0; call < 4; ++call) const at::Tensor y = Mul(weight_, gradient_);
  const std::shared_ptr<Trace> trace = PendingTrace();
  trace->period = 2;
  EXPECT_EQ(PartsOfPending(), (Cuts{0, 1, 3, 5}));
}

TEST_F(Segments, NothingNeedComeBeforeTwoSteps) {
  for (int call = 0; call < 4; ++call) const at::Tensor y = Mul(weight_, gradient_);
  const std::shared_ptr<Trace> trace = PendingTrace();
  trace->period = 2;
  EXPECT_EQ(PartsOfPending(), (Cuts{0, 2, 4}));
}

TEST_F(Segments, EachPartBeginsAtTheRoot) {
  AddInPlace(weight_, gradient_, /*alpha=*/2.0);
  const at::Tensor y = Add(weight_, gradient_, /*alpha=*/3.0);
  EXPECT_EQ(ValuesOf(y), (Values{1 + 20 + 30, 2 + 40 + 60}));
  EXPECT_EQ(ValuesOf(weight_), (Values{21, 42}));
  EXPECT_EQ(base::Get(base::Counter::kTracesRun), 2);
  const TrieNode* const update = FirstCall("aten::add_.Tensor", {0, 1});
  const TrieNode* const next = FirstCall("aten::add.Tensor", {0, 1});
  ASSERT_TRUE(update != nullptr && next != nullptr);
  EXPECT_EQ(update->entries.size(), 1);
  EXPECT_EQ(next->entries.size(), 1);
  const TrieNode* const whole = ChildOf(update, "aten::add.Tensor", {0, 1});
  ASSERT_NE(whole, nullptr);
  EXPECT_TRUE(whole->entries.empty());
}

// A part's entry is that of a program which waits there.
TEST_F(Segments, APartIsATraceThatTheProgramMayAlsoCut) {
  AddInPlace(weight_, gradient_);
  CutThreadTrace("test");
  at::Tensor y = Mul(weight_, gradient_);
  CutThreadTrace("test");
  y = at::Tensor();
  EXPECT_EQ(base::Get(base::Counter::kTraceMisses), 2);
  AddInPlace(weight_, gradient_);
  y = Mul(weight_, gradient_);
  CutThreadTrace("test");
  EXPECT_EQ(base::Get(base::Counter::kTraceMisses), 2);
  EXPECT_EQ(base::Get(base::Counter::kTraceHits), 2);
  EXPECT_EQ(ValuesOf(y), (Values{21 * 10, 42 * 20}));
}

// y dies before the next step begins, which cannot read it: the first part need not store it.
TEST_F(Segments, APartReturnsWhatOthersMayFind) {
  at::Tensor y = Mul(weight_, weight_);
  AddInPlace(weight_, y);
  y = at::Tensor();
  const at::Tensor z = Mul(weight_, gradient_);
  CutThreadTrace("test");
  const TrieNode* const square = FirstCall("aten::mul.Tensor", {0, 0});
  ASSERT_NE(square, nullptr);
  const TrieNode* const update = ChildOf(square, "aten::add_.Tensor", {0, 1});
  ASSERT_NE(update, nullptr);
  ASSERT_EQ(update->entries.size(), 1);
  EXPECT_TRUE(update->entries[0]->Serves({true, false}));
  EXPECT_FALSE(update->entries[0]->Serves({true, true}));
  EXPECT_EQ(ValuesOf(z), (Values{(1 + 1) * 10, (2 + 4) * 20}));
}

// The first part reads what a later one reads again.
TEST_F(Segments, InputsOutliveTheParts) {
  AddInPlace(weight_, gradient_);
  const at::Tensor y = Mul(gradient_, gradient_);
  EXPECT_EQ(ValuesOf(y), (Values{100, 400}));
  EXPECT_EQ(ValuesOf(gradient_), (Values{10, 20}));
}

// The loop is noticed after its second step: both run as steps of their own, and later ones are cut at once.
TEST_F(Segments, ALoopsStepsAreMarked) {
  const auto step = [&] {
    const at::Tensor y = Mul(weight_, gradient_);
    AddInPlace(weight_, y);
  };
  step();
  EXPECT_EQ(base::Get(base::Counter::kTracesRun), 0);
  step();
  EXPECT_EQ(base::Get(base::Counter::kTracesRun), 2);
  EXPECT_EQ(base::Get(base::Tally::kCuts, "step"), 1);
  step();
  EXPECT_TRUE(PendingTrace()->ends_step);
  EXPECT_EQ(PendingTrace()->num_calls(), 2);
  EXPECT_EQ(base::Get(base::Counter::kTracesRun), 2);
  step();  // its first call runs the third step
  EXPECT_EQ(base::Get(base::Counter::kTracesRun), 3);
  EXPECT_EQ(ValuesOf(weight_), (Values{1 * 11 * 11 * 11 * 11, 2 * 21 * 21 * 21 * 21}));
  EXPECT_EQ(base::Get(base::Tally::kCuts, "step"), 2);
  // The second step was cut inside its last call, where none is cut again: nothing was asked of its entry.
  EXPECT_EQ(base::Get(base::Counter::kTraceMisses), 1);
  EXPECT_EQ(base::Get(base::Counter::kTraceHits), 2);
}

// The second part fails: what the first has written stays, and what the second should have made has no value.
TEST_F(Segments, AFailedPartTakesNothingFromTheOthers) {
  const at::Tensor no_such_index = Holding(std::vector<int64_t>{7, 0});
  AddInPlace(weight_, gradient_);
  const at::Tensor y = Gather(weight_, no_such_index);
  EXPECT_EQ(PartsOfPending(), (Cuts{0, 1, 2}));
  EXPECT_THROW(CutThreadTrace("test"), c10::Error);
  EXPECT_EQ(ValuesOf(weight_), (Values{11, 22}));
  EXPECT_EQ(ValuesOf(gradient_), (Values{10, 20}));
  EXPECT_THROW(ValuesOf(y), c10::Error);
}

// Memory that nobody had filled is filled by the part that fails later.
TEST_F(Segments, WhatAFailedPartHasWrittenStays) {
  const Op& mul_out = OpNamed("aten::mul", "out");
  const at::Tensor no_such_index = Holding(std::vector<int64_t>{7, 0});
  const at::Tensor filled = MakeTensor(MakeStorage(2 * sizeof(float)), at::kFloat, {2}, {1});
  AddInPlace(weight_, gradient_);
  Record(mul_out, {gradient_, gradient_, filled});
  const at::Tensor y = Gather(gradient_, no_such_index);
  EXPECT_EQ(PartsOfPending(), (Cuts{0, 1, 3}));
  EXPECT_THROW(CutThreadTrace("test"), c10::Error);
  EXPECT_TRUE(LazyStorageImpl::Of(filled)->content);  // else it would be filled anew, perhaps with the same
  EXPECT_EQ(ValuesOf(filled), (Values{100, 400}));
}

}  // namespace
}  // namespace torch_lazy::lazy
