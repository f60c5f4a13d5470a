// SPDX-License-Identifier: Apache-2.0
// Which loops have steps, and where these end.
#include "lazy/trace/step_detector.h"

#include <gtest/gtest.h>

#include "lazy/trace/storage.h"
#include "test/lazy/step_loop.h"

namespace torch_lazy::lazy {
namespace {

constexpr auto Written = StepLoop::Written;
enum : int64_t { kForward, kBackward, kUpdate, kOther };

// One step of a training loop: y = f(w, batch), w += g(y).
void TrainStep(StepLoop* loop, int32_t weight) {
  const int32_t batch = loop->Older();
  const int32_t y = loop->Call(kForward, {{weight}, {batch}});
  loop->Update(kUpdate, {Written(weight), {y}});
}

TEST(StepDetector, AStepClosesWhenItRepeatsTheOneBefore) {
  StepLoop loop;
  const int32_t weight = loop.Older();
  TrainStep(&loop, weight);
  EXPECT_EQ(loop.Advance().period, 0);
  const int32_t y = loop.Call(kForward, {{weight}, {loop.Older()}});
  EXPECT_EQ(loop.Advance().period, 0);
  loop.Update(kUpdate, {Written(weight), {y}});
  const ClosedStep closed = loop.Advance();
  EXPECT_EQ(closed.period, 2);
  EXPECT_FALSE(closed.is_pure);
}

TEST(StepDetector, CallsBeforeTheLoopAreNoPartOfIt) {
  StepLoop loop;
  const int32_t weight = loop.Older();
  loop.Call(kOther, {{weight}});
  loop.Call(kOther, {{weight}});
  TrainStep(&loop, weight);
  loop.Advance();
  TrainStep(&loop, weight);
  EXPECT_EQ(loop.Advance().period, 2);
}

TEST(StepDetector, OneCallMayBeAStep) {
  StepLoop loop;
  const int32_t weight = loop.Older();
  loop.Update(kUpdate, {Written(weight)});
  EXPECT_EQ(loop.Advance().period, 0);
  loop.Update(kUpdate, {Written(weight)});
  EXPECT_EQ(loop.Advance().period, 1);
}

// The detector is asked after each call: a step that closed earlier is no longer news.
TEST(StepDetector, OnlyTheNewestCallClosesAStep) {
  StepLoop loop;
  const int32_t weight = loop.Older();
  TrainStep(&loop, weight);
  TrainStep(&loop, weight);
  loop.Call(kForward, {{weight}, {loop.Older()}});
  EXPECT_EQ(loop.Advance().period, 0);
}

TEST(StepDetector, EachFurtherStepCloses) {
  StepLoop loop;
  const int32_t weight = loop.Older();
  for (int step = 0; step < 4; ++step) {
    TrainStep(&loop, weight);
    EXPECT_EQ(loop.Advance().period, step == 0 ? 0 : 2) << step;
  }
}

// But for the update, whose operands are as large as ever.
TEST(StepDetector, StepsOfOtherSizesClose) {
  StepLoop loop;
  const int32_t weight = loop.Older();
  for (const int64_t size : {100, 70, 80}) {
    const int32_t batch = loop.Older();
    loop.SetSize(size);
    const int32_t y = loop.Call(kForward, {{weight}, {batch}});
    EXPECT_EQ(loop.Advance().period, 0);
    loop.SetSize(4);
    loop.Update(kUpdate, {Written(weight), {y}});
    EXPECT_EQ(loop.Advance().period, size == 100 ? 0 : 2) << size;
  }
}

TEST(StepDetector, OtherCallsAreAnotherStep) {
  StepLoop loop;
  const int32_t weight = loop.Older();
  TrainStep(&loop, weight);
  loop.Advance();
  const int32_t y = loop.Call(kOther, {{weight}, {loop.Older()}});
  loop.Update(kUpdate, {Written(weight), {y}});
  EXPECT_EQ(loop.Advance().period, 0);
}

// A step that is longer than the one before does not close, although its end is the same.
TEST(StepDetector, StepsAreEquallyLong) {
  StepLoop loop;
  const int32_t weight = loop.Older();
  TrainStep(&loop, weight);
  loop.Advance();
  loop.Call(kOther, {{weight}});
  TrainStep(&loop, weight);
  EXPECT_EQ(loop.Advance().period, 0);
}

// h = f(h), layer after layer: what a layer writes is its own.
TEST(StepDetector, LayersAreNoSteps) {
  StepLoop loop;
  int32_t h = loop.Older();
  for (int layer = 0; layer < 6; ++layer) {
    h = loop.Call(kForward, {{h}, {loop.Older()}});
    EXPECT_EQ(loop.Advance().period, 0) << layer;
  }
}

// In each layer, an attention and a product add to the gradient that autograd hands from layer to layer.
TEST(StepDetector, LayersThatAddToOneGradientAreNoSteps) {
  StepLoop loop;
  const int32_t gradient = loop.Older();
  for (int layer = 0; layer < 6; ++layer) {
    for (const int64_t call : {kForward, kBackward}) {
      const int32_t more = loop.Call(call, {{gradient}, {loop.Older()}, {loop.Older()}, {loop.Older()}});
      loop.Update(kUpdate, {Written(gradient), {more}});
      EXPECT_EQ(loop.Advance().period, 0) << layer;
    }
  }
}

// out[t].copy_(f(x)): each time step writes a storage of its own.
TEST(StepDetector, TimeStepsAreNoSteps) {
  StepLoop loop;
  const int32_t weight = loop.Older();
  for (int t = 0; t < 6; ++t) {
    const int32_t y = loop.Call(kForward, {{weight}});
    loop.Update(kUpdate, {Written(loop.Older()), {y}});
    EXPECT_EQ(loop.Advance().period, 0) << t;
  }
}

// p -= g, parameter after parameter.
TEST(StepDetector, AnOptimizersLoopOverParametersIsNone) {
  StepLoop loop;
  for (int parameter = 0; parameter < 6; ++parameter) {
    loop.Update(kUpdate, {Written(loop.Older()), {loop.Older()}});
    EXPECT_EQ(loop.Advance().period, 0) << parameter;
  }
}

// In one step the update reads this step's result, in the next one the result of the step before.
TEST(StepDetector, OperandsAreEquallyOld) {
  StepLoop loop;
  const int32_t weight = loop.Older();
  const int32_t first = loop.Call(kForward, {{weight}});
  loop.Update(kUpdate, {Written(weight), {first}});
  loop.Advance();
  loop.Call(kForward, {{weight}});
  loop.Update(kUpdate, {Written(weight), {first}});
  EXPECT_EQ(loop.Advance().period, 2);  // one storage in both
  const int32_t third = loop.Call(kForward, {{weight}});
  loop.Update(kUpdate, {Written(weight), {third}});
  EXPECT_EQ(loop.Advance().period, 0);
}

// w is updated twice a step, after different calls.
TEST(StepDetector, AStepMayUpdateSeveralTimes) {
  StepLoop loop;
  const int32_t weight = loop.Older(), mean = loop.Older();
  const auto step = [&] {
    const int32_t y = loop.Call(kForward, {{weight}});
    loop.Update(kOther, {Written(mean), {y}});
    EXPECT_EQ(loop.Advance().period, 0);
    const int32_t g = loop.Call(kBackward, {{y}});
    EXPECT_EQ(loop.Advance().period, 0);
    loop.Update(kUpdate, {Written(weight), {g}});
    return loop.Advance().period;
  };
  EXPECT_EQ(step(), 0);
  EXPECT_EQ(step(), 4);
}

// One update for each of three minibatches, which are views at other offsets: their calls are not alike.
TEST(StepDetector, AStepMayHaveMinibatches) {
  StepLoop loop;
  const int32_t weight = loop.Older();
  for (int step = 0; step < 3; ++step) {
    const int32_t batch = loop.Older();
    for (int minibatch = 0; minibatch < 3; ++minibatch) {
      const int32_t y = loop.Call(kOther + minibatch, {{weight}, {batch}});
      EXPECT_EQ(loop.Advance().period, 0);
      loop.Update(kUpdate, {Written(weight), {y}});
      EXPECT_EQ(loop.Advance().period, step == 0 || (step == 1 && minibatch < 2) ? 0 : 6);
    }
  }
}

// The first write of the third step tells that there are steps. They end after the last of their updates all the same,
// where nothing is handed over.
TEST(StepDetector, AStepEndsWhereItHandsOverLittle) {
  StepLoop loop;
  const int32_t mean = loop.Older(), weight = loop.Older();
  loop.Call(kOther, {{weight}});
  for (int step = 0; step < 4; ++step) {
    const int32_t y = loop.Call(kForward, {{weight}}, /*result_bytes=*/1000);
    loop.Update(kOther, {Written(mean), {y}});
    EXPECT_EQ(loop.Advance().period, 0) << step;
    loop.Update(kUpdate, {Written(weight), {y}});
    EXPECT_EQ(loop.Advance().period, step < 2 ? 0 : 4) << step;
    loop.Call(kBackward, {{weight}}, /*result_bytes=*/10);
    loop.Advance();
  }
}

// A loop that only computes has no steps here: the host is not idle until somebody waits.
TEST(StepDetector, OnTheCpuNoStepIsPure) {
  StepLoop loop;
  const c10::Storage held = MakeStorage(size_t{4});
  const int32_t weight = loop.Older();
  for (int step = 0; step < 4; ++step) {
    loop.Call(kForward, {{weight}, {loop.Older()}}, size_t{192} << 20);
    const int32_t y = loop.Call(kOther, {{weight}}, size_t{64} << 20);
    loop.SetOwner(y, LazyStorageImpl::Of(held.unsafeGetStorageImpl()));
    EXPECT_EQ(loop.Advance().period, 0) << step;
  }
}

}  // namespace
}  // namespace torch_lazy::lazy
