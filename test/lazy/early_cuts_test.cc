// SPDX-License-Identifier: Apache-2.0
// Note [Early cuts]: steps that are waited for, on a machine with a GPU's kernels. ATen runs the calls, so values are
// exact.
#include "lazy/cuts/early_cuts.h"

#include "base/metrics.h"
#include "lazy/cuts/cut.h"
#include "test/lazy/fake_backend.h"
#include "test/lazy/recording.h"

namespace torch_lazy::lazy {
namespace {

[[maybe_unused]] const bool is_stand_in = [] {
  backends::Fake().made_for = codegen::Target::kCuda;
  return backends::Fake().is_stand_in = true;
}();

using Cuts = std::vector<size_t>;

// --- where ---

// Chains of calls, each of which reads the result of the one before.
class EarlyCutsOfChain : public RecordingTest {
 protected:
  void Append(int calls) {
    for (int k = 0; k < calls; ++k) y_ = num_calls_++ % 3 == 0 ? Add(y_, one_) : Mul(y_, one_);
  }
  void AppendOther() {
    y_ = Gather(y_, index_);
    ++num_calls_;
  }
  Cuts Places(Cuts cuts = {}) {
    const std::shared_ptr<Trace> trace = PendingTrace();
    cuts.insert(cuts.begin(), 0);
    cuts.push_back(static_cast<size_t>(num_calls_));
    EXPECT_EQ(trace->path.size(), cuts.back());
    return WithEarlyCuts(*trace, cuts);
  }

  int num_calls_ = 0;
  const at::Tensor one_ = Holding(std::vector<float>{1, 1}), index_ = Holding(std::vector<int64_t>{1, 0});
  at::Tensor y_ = Holding(std::vector<float>{2, 3});
};

TEST_F(EarlyCutsOfChain, TheFirstAndTheLastPartAreShort) {
  Append(160);
  EXPECT_EQ(Places(), (Cuts{0, 29, 72, 130, 160}));
}

TEST_F(EarlyCutsOfChain, PartsOfLongStepsGrowAndShrink) {
  Append(1400);
  EXPECT_EQ(Places(), (Cuts{0, 71, 179, 323, 502, 717, 969, 1184, 1328, 1400}));
}

TEST_F(EarlyCutsOfChain, TheNextStepsBeginningTakesThePlaceOfTheNearest) {
  Append(160);
  EXPECT_EQ(Places({110}), (Cuts{0, 29, 72, 110, 160}));
  EXPECT_EQ(Places({2}), (Cuts{0, 2, 72, 130, 160}));
}

TEST_F(EarlyCutsOfChain, NothingIsFusedWithCallsOfLibraries) {
  Append(20);
  AppendOther();
  Append(139);
  EXPECT_EQ(Places(), (Cuts{0, 21, 72, 130, 160}));
}

TEST_F(EarlyCutsOfChain, WhatIsKeptIsStoredAnyway) {
  Append(30);
  const at::Tensor kept = y_;
  Append(130);
  EXPECT_EQ(Places(), (Cuts{0, 30, 72, 130, 160}));
}

// --- when ---

constexpr int kCalls = 132;
constexpr int64_t kNumbers = 1 << 19;  // 2 MiB for each of the calls

class EarlyCutsOfLoop : public RecordingTest {
 protected:
  // Parts of it are not alike.
  at::Tensor Step(int calls = kCalls) {
    at::Tensor y = x_;
    for (int k = 0; k < calls; ++k) y = k < 30 ? Mul(y, one_) : k < 90 ? Add(y, one_) : Mul(one_, y);
    return y;
  }
  static int64_t TracesRun() { return base::Get(base::Counter::kTracesRun); }
  static void Wait() { CutThreadTraceForHost("test"); }
  // Traces that ran before the wait, and all.
  std::pair<int64_t, int64_t> StepAndWait() {
    const int64_t before = TracesRun();
    const at::Tensor y = Step();
    const int64_t early = TracesRun() - before;
    Wait();
    const int64_t all = TracesRun() - before;
    EXPECT_EQ(ValuesOf(y)[7], 2 + 60);
    return {early, all};
  }
  using Counts = std::pair<int64_t, int64_t>;
  const at::Tensor x_ = Holding(std::vector<float>(kNumbers, 2)), one_ = Holding(std::vector<float>(kNumbers, 1));
};

TEST_F(EarlyCutsOfLoop, AfterTwoWaitsPartsRunWhileTheRestIsRecorded) {
  EXPECT_EQ(StepAndWait(), (Counts{0, 1}));
  EXPECT_EQ(StepAndWait(), (Counts{0, 4}));
  EXPECT_EQ(base::Get(base::Tally::kCuts, "step"), 0);
  for (int step = 0; step < 3; ++step) EXPECT_EQ(StepAndWait(), (Counts{3, 4}));
  EXPECT_EQ(base::Get(base::Tally::kCuts, "step"), 9);
  EXPECT_EQ(base::Get(base::Tally::kCuts, "test"), 5);
}

// The last part updates a parameter, and then reads what a part before has made.
TEST_F(EarlyCutsOfLoop, PartsAreNotCutAgain) {
  for (int step = 0; step < 4; ++step) {
    const int64_t before = TracesRun();
    const at::Tensor half = Step(60);
    at::Tensor y = half;
    for (int k = 60; k < kCalls; ++k) y = Mul(one_, y);
    AddInPlace(x_, one_);
    const at::Tensor z = Mul(half, one_);
    Wait();
    EXPECT_EQ(TracesRun() - before, step == 0 ? 1 : 4);
    EXPECT_EQ(ValuesOf(z)[7], 2 + step + 30);
  }
}

// Nothing is known of a trace that comes late but by its parts.
TEST_F(EarlyCutsOfLoop, PartsAreKnown) {
  for (int step = 0; step < 3; ++step) StepAndWait();
  const int64_t misses = base::Get(base::Counter::kTraceMisses);
  for (int step = 0; step < 3; ++step) StepAndWait();
  EXPECT_EQ(base::Get(base::Counter::kTraceMisses), misses);
}

TEST_F(EarlyCutsOfLoop, AProgramMayTurnElsewhere) {
  for (int step = 0; step < 3; ++step) StepAndWait();
  const at::Tensor begun = Step(20);  // beyond the first part
  const at::Tensor y = Add(begun, x_);
  Wait();
  EXPECT_EQ(ValuesOf(y)[7], 4);
  EXPECT_EQ(ValuesOf(begun)[7], 2);
}

TEST_F(EarlyCutsOfLoop, WaitsNowAndThenAreNone) {
  for (int step = 0; step < 6; ++step) {
    const at::Tensor y = Step();
    if (step % 2 == 0) Wait();
    if (step % 2 == 1) CutThreadTraceAndGoOn("test");
  }
  EXPECT_EQ(TracesRun(), 6);
}

// Another thread, say, does not wait for the GPU.
TEST_F(EarlyCutsOfLoop, OnlyTheHostWaits) {
  for (int step = 0; step < 4; ++step) {
    const at::Tensor y = Step();
    CutThreadTrace("test");
  }
  EXPECT_EQ(TracesRun(), 4);
}

TEST_F(EarlyCutsOfLoop, ShortOnesStayWhole) {
  for (int step = 0; step < 4; ++step) {
    const at::Tensor y = Step(127);
    Wait();
  }
  EXPECT_EQ(TracesRun(), 4);
}

TEST_F(EarlyCutsOfLoop, SmallOnesStayWhole) {
  const at::Tensor one = Holding(std::vector<float>{1});
  for (int step = 0; step < 4; ++step) {
    at::Tensor y = one;
    for (int k = 0; k < kCalls; ++k) y = Add(y, one);
    Wait();
  }
  EXPECT_EQ(TracesRun(), 4);
}

// Its calls are put into the trace at once.
TEST_F(EarlyCutsOfLoop, WhatIsReplayedStaysWhole) {
  for (int step = 0; step < 4; ++step) {
    const at::Tensor y = Step();
    PendingTrace()->replays = true;
    Wait();
  }
  EXPECT_EQ(TracesRun(), 4);
}

}  // namespace
}  // namespace torch_lazy::lazy
