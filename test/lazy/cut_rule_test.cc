// SPDX-License-Identifier: Apache-2.0
// When a trace is cut though nobody waits.
#include "lazy/trace/cut_rule.h"

#include "base/metrics.h"
#include "test/lazy/recording.h"

namespace torch_lazy::lazy {
namespace {

using Values = std::vector<float>;

class CutRule : public RecordingTest {
 protected:
  void TearDown() override {
    SetOption("max_trace_ops", "16384");
    SetOption("max_trace_bytes", "0");
    RecordingTest::TearDown();
  }
  static int64_t Cuts(const char* reason) { return base::Get(base::Tally::kCuts, reason); }
  // So many calls, each with a result of 8 bytes that dies.
  void RecordSquares(int calls) {
    for (int call = 0; call < calls; ++call) Mul(x_, x_);
  }
  const at::Tensor x_ = Holding(Values{1, 2});
};

TEST_F(CutRule, ATraceOfSoManyCallsIsCut) {
  SetOption("max_trace_ops", "3");
  RecordSquares(2);
  EXPECT_EQ(Cuts("length"), 0);
  RecordSquares(1);
  EXPECT_EQ(Cuts("length"), 1);
  EXPECT_EQ(PendingTrace()->num_calls(), 0);
  RecordSquares(3);
  EXPECT_EQ(Cuts("length"), 2);
}

TEST_F(CutRule, ATraceOfSoManyNewBytesIsCut) {
  SetOption("max_trace_bytes", "24");
  RecordSquares(2);
  EXPECT_EQ(Cuts("bytes"), 0);
  RecordSquares(1);
  EXPECT_EQ(Cuts("bytes"), 1);
}

TEST_F(CutRule, WritesMakeNoNewBytes) {
  SetOption("max_trace_bytes", "8");
  const at::Tensor y = Holding(Values{3, 4});
  AddInPlace(y, x_);
  EXPECT_EQ(Cuts("bytes"), 0);
}

// A loop that was noticed late is cut at once; a known one when the next call comes.
TEST_F(CutRule, AKnownStepIsCutBeforeTheNextCall) {
  const at::Tensor y = Holding(Values{3, 4});
  AddInPlace(y, x_);
  EXPECT_EQ(Cuts("step"), 0);
  AddInPlace(y, x_);
  EXPECT_EQ(Cuts("step"), 1);
  AddInPlace(y, x_);
  EXPECT_EQ(Cuts("step"), 1);
  EXPECT_TRUE(PendingTrace()->ends_step);
  AddInPlace(y, x_);
  EXPECT_EQ(Cuts("step"), 2);
}

TEST_F(CutRule, ThereIsRoomForCallsAndBytesBelowTheLimits) {
  SetOption("max_trace_ops", "10");
  SetOption("max_trace_bytes", "100");
  Trace trace;
  trace.path.resize(4);
  trace.new_bytes = 60;
  EXPECT_TRUE(HasRoomFor(trace, 5, 39));
  EXPECT_FALSE(HasRoomFor(trace, 6, 39));
  EXPECT_FALSE(HasRoomFor(trace, 5, 40));
}

// Note [Pure steps] in step_detector.h: four times as many, up to as many as share a launch.
TEST_F(CutRule, PureStepsThatShareLaunchesAreRecordedTogether) {
  Expected at;
  Trace trace;
  trace.at = &at;
  at.is_pure = true;
  EXPECT_EQ(PureStepsAfter(trace, /*shares_launches=*/true), 4);
  EXPECT_EQ(PureStepsAfter(trace, /*shares_launches=*/false), 1);
  trace.pure_steps_wanted = 4;
  EXPECT_EQ(PureStepsAfter(trace, /*shares_launches=*/true), 16);
  trace.pure_steps_wanted = 16;
  EXPECT_EQ(PureStepsAfter(trace, /*shares_launches=*/true), 16);
  at.is_pure = false;
  EXPECT_EQ(PureStepsAfter(trace, /*shares_launches=*/true), 1);
}

}  // namespace
}  // namespace torch_lazy::lazy
