// SPDX-License-Identifier: Apache-2.0
// Which calls a prediction takes, and that one which does not hold leaves no trace.
#include "lazy/record/prediction.h"

#include <thread>

#include "base/metrics.h"
#include "lazy/cuts/cut.h"
#include "lazy/trace/thread_trace.h"
#include "test/lazy/recording.h"

namespace torch_lazy::lazy {
namespace {

using Values = std::vector<float>;

class Predictions : public RecordingTest {
 protected:
  // Traces of one call that are known from other tensors. The one made last is expected.
  static void LearnAdd(const at::Scalar& alpha = 2.0) {
    const at::Tensor z = Add(Holding(Values{0, 0}), Holding(Values{0, 0}), alpha);
    CutThreadTrace("test");
  }
  static void LearnAddInPlace() {
    AddInPlace(Holding(Values{0, 0}), Holding(Values{0, 0}), 2.0);
    CutThreadTrace("test");
  }
  static bool Holds(const at::Tensor& x, const at::Tensor& y, const at::Scalar& alpha = 2.0) {
    return Prediction(OpNamed("aten::add", "Tensor")).Holds(x, y, alpha);
  }

  const at::Tensor x_ = Holding(Values{1, 2}), y_ = Holding(Values{10, 20});
};

TEST_F(Predictions, NothingIsExpectedWhereNothingIsKnown) { EXPECT_FALSE(Holds(x_, y_)); }

TEST_F(Predictions, TheSameCallIsExpected) {
  LearnAdd();
  EXPECT_TRUE(Holds(x_, y_));
}

TEST_F(Predictions, NumbersAreNoPartOfTheCall) {
  LearnAdd();
  EXPECT_TRUE(Holds(x_, y_, 7.0));
}

TEST_F(Predictions, TheTypeOfANumberIs) {
  LearnAdd();
  EXPECT_FALSE(Holds(x_, y_, 2));
}

TEST_F(Predictions, AnAlphaOfOneIsACallOfItsOwn) {
  LearnAdd(/*alpha=*/1);
  EXPECT_TRUE(Holds(x_, y_, 1));
  EXPECT_FALSE(Holds(x_, y_, 3));
}

TEST_F(Predictions, AnotherOperatorIsAnotherCall) {
  LearnAdd();
  EXPECT_FALSE(Prediction(OpNamed("aten::sub", "Tensor")).Holds(x_, y_, at::Scalar(2.0)));
}

TEST_F(Predictions, OtherSizesAreAnotherCall) {
  LearnAdd();
  EXPECT_FALSE(Holds(Holding(Values{1, 2, 3}), Holding(Values{1, 2, 3})));
}

TEST_F(Predictions, OtherDtypesAreAnotherCall) {
  LearnAdd();
  EXPECT_FALSE(Holds(x_, Holding(std::vector<int64_t>{1, 2})));
}

TEST_F(Predictions, OneStorageForTwoOperandsIsAnotherCall) {
  LearnAdd();
  EXPECT_FALSE(Holds(x_, x_));
}

TEST_F(Predictions, TwoStoragesForOneOperandAreAnotherCall) {
  const at::Tensor y = Add(x_, x_, 2.0);
  CutThreadTrace("test");
  EXPECT_TRUE(Holds(y_, y_));
  EXPECT_FALSE(Holds(x_, y_));
}

// The second call reads the first one's result, not another storage.
TEST_F(Predictions, OperandsAreKnownByTheirPlaceInTheTrace) {
  const auto call = [&](const at::Tensor& x) { return Add(x, y_, 2.0); };
  at::Tensor z = call(call(x_));
  CutThreadTrace("test");
  const at::Tensor first = call(x_);
  EXPECT_FALSE(Holds(x_, y_));
  EXPECT_TRUE(Holds(first, y_));
}

TEST_F(Predictions, WhatHoldsIsRecorded) {
  LearnAdd();
  at::Tensor z;
  {
    Prediction prediction(OpNamed("aten::add", "Tensor"));
    ASSERT_TRUE(prediction.Holds(x_, y_, at::Scalar(3.0)));
    z = prediction.Result<at::Tensor>();
    prediction.End();
  }
  EXPECT_EQ(CallsOf(*PendingTrace()), "add.Tensor");
  EXPECT_EQ(z.sizes(), x_.sizes());
  EXPECT_EQ(z.scalar_type(), at::kFloat);
  EXPECT_EQ(base::Get(base::Counter::kCallsTotal), 2);
  EXPECT_EQ(ValuesOf(z), (Values{31, 62}));
  EXPECT_EQ(base::Get(base::Counter::kTraceMisses), 1);
  EXPECT_EQ(base::Get(base::Counter::kTraceHits), 1);
}

TEST_F(Predictions, AWriteIsRecorded) {
  LearnAddInPlace();
  {
    Prediction prediction(OpNamed("aten::add_", "Tensor"));
    ASSERT_TRUE(prediction.Holds(x_, y_, at::Scalar(2.0)));
    prediction.Result<void>();
    prediction.End();
  }
  EXPECT_EQ(LazyStorageImpl::Of(x_)->writer, PendingTrace().get());
  EXPECT_EQ(LazyStorageImpl::Of(y_)->writer, nullptr);
  EXPECT_EQ(ValuesOf(x_), (Values{21, 42}));
}

// It differs in its last argument, after operands and words have been compared.
TEST_F(Predictions, WhatDoesNotHoldLeavesNoTrace) {
  const at::Tensor y = Add(Add(x_, y_, 2.0), y_, 2.0);
  CutThreadTrace("test");
  const at::Tensor first = Add(x_, y_, 2.0), fresh = Holding(Values{5, 6});
  const std::shared_ptr<Trace> trace = PendingTrace();
  const size_t slots = trace->slots.size(), numbers = trace->numbers.size();
  EXPECT_FALSE(Holds(first, y_, 2));
  EXPECT_FALSE(Holds(first, fresh, 2.0));
  EXPECT_FALSE(Holds(first, y_, 1e39));  // written down before it is looked at
  EXPECT_EQ(PendingTrace(), trace);
  EXPECT_EQ(trace->num_calls(), 1);
  EXPECT_EQ(trace->slots.size(), slots);
  EXPECT_EQ(trace->numbers.size(), numbers);
  EXPECT_TRUE(LazyStorageImpl::Of(fresh)->touches.empty());
}

TEST_F(Predictions, RefusedNumbersAreNotTaken) {
  LearnAdd();
  EXPECT_TRUE(Holds(x_, y_, 1e38));
  EXPECT_FALSE(Holds(x_, y_, 1e39));  // no float32
}

TEST_F(Predictions, AStepThatHasEndedRunsFirst) {
  for (int step = 0; step < 3; ++step) AddInPlace(x_, y_, 2.0);
  const std::shared_ptr<Trace> ended = PendingTrace();
  ASSERT_TRUE(ended->ends_step);
  {
    Prediction prediction(OpNamed("aten::add_", "Tensor"));
    EXPECT_EQ(ended->state, Trace::State::kDone);
    EXPECT_TRUE(prediction.Holds(x_, y_, at::Scalar(2.0)));
  }
}

TEST_F(Predictions, ATraceThatIsFullRunsAtTheEnd) {
  LearnAdd();
  SetOption("max_trace_ops", "1");
  const int64_t run = base::Get(base::Counter::kTracesRun);
  Prediction prediction(OpNamed("aten::add", "Tensor"));
  ASSERT_TRUE(prediction.Holds(x_, y_, at::Scalar(2.0)));
  const at::Tensor z = prediction.Result<at::Tensor>();
  EXPECT_EQ(base::Get(base::Counter::kTracesRun), run);
  prediction.End();
  EXPECT_EQ(base::Get(base::Counter::kTracesRun), run + 1);
  SetOption("max_trace_ops", "16384");
}

// Another thread's trace must run first, which the long way sees to.
TEST_F(Predictions, WhatAnotherThreadWritesIsNotTaken) {
  std::thread([&] { AddInPlace(y_, y_); }).join();
  LearnAdd();
  EXPECT_FALSE(Holds(x_, y_));
  EXPECT_TRUE(Holds(x_, Holding(Values{1, 2})));
}

TEST_F(Predictions, WhatAnotherThreadReadsIsNotWritten) {
  std::thread([&] { const at::Tensor z = Add(x_, y_); }).join();
  LearnAddInPlace();
  EXPECT_FALSE(Prediction(OpNamed("aten::add_", "Tensor")).Holds(x_, y_, at::Scalar(2.0)));
  EXPECT_TRUE(Prediction(OpNamed("aten::add_", "Tensor")).Holds(Holding(Values{1, 2}), y_, at::Scalar(2.0)));
}

TEST_F(Predictions, OtherSettingsAreAnotherCall) {
  LearnAdd();
  c10::set_default_dtype(caffe2::TypeMeta::Make<double>());
  EXPECT_FALSE(Holds(x_, y_));
  c10::set_default_dtype(caffe2::TypeMeta::Make<float>());
  EXPECT_TRUE(Holds(x_, y_));
}

}  // namespace
}  // namespace torch_lazy::lazy
