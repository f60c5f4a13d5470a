// SPDX-License-Identifier: Apache-2.0
// Where steps end that are not alike.
#include "lazy/trace/unlike_steps.h"

#include <gtest/gtest.h>

#include "test/lazy/step_loop.h"

namespace torch_lazy::lazy {
namespace {

constexpr auto Written = StepLoop::Written;
enum : int64_t { kForward, kBackward, kUpdate, kOther };

// y = f(w, batch) for each of some batches, and calls that take what was made; then w += g(y). Tells where the step
// before has ended, if the first of the batches does.
size_t Step(StepLoop* loop, int32_t weight, int batches, int others = 16) {
  int32_t y = loop->Call(kForward, {{weight}, {loop->Older()}});
  const size_t end = loop->EndOfUnlikeStep();
  for (int k = 1; k < batches; ++k) y = loop->Call(kForward, {{weight}, {loop->Older()}});
  for (int k = 0; k < others; ++k) y = loop->Call(kOther, {{y}});
  loop->Update(kUpdate, {Written(weight), {y}});
  EXPECT_EQ(loop->EndOfUnlikeStep(), 0);
  return end;
}

TEST(UnlikeSteps, EndBehindTheUpdateOfWhatIsReadAgain) {
  StepLoop loop;
  const int32_t weight = loop.Older();
  EXPECT_EQ(Step(&loop, weight, 4), 0);
  EXPECT_EQ(Step(&loop, weight, 2), 21);
  EXPECT_EQ(Step(&loop, weight, 3), 40);
}

// Statistics are read by the call alone that writes them.
TEST(UnlikeSteps, WhatIsOnlyUpdatedEndsNone) {
  StepLoop loop;
  const int32_t statistics = loop.Older();
  for (int step = 0; step < 8; ++step) {
    for (int k = 0; k < 20; ++k) loop.Call(kOther, {{loop.Older()}});
    loop.Update(kUpdate, {Written(statistics)});
    EXPECT_EQ(loop.EndOfUnlikeStep(), 0);
  }
}

// Gradients are added up, read for their norm, scaled, and read by the optimizer.
TEST(UnlikeSteps, WhatOtherCallsReadAgainEndsNone) {
  StepLoop loop;
  const int32_t gradient = loop.Older();
  for (int k = 0; k < 20; ++k) loop.Update(kUpdate, {Written(gradient)});
  loop.Call(kForward, {{gradient}});
  loop.Update(kOther, {Written(gradient)});
  loop.Call(kBackward, {{gradient}});
  EXPECT_EQ(loop.EndOfUnlikeStep(), 0);
}

// A decoder's layers each update a cache and read it, the head follows, and the next token begins with the first layer.
TEST(UnlikeSteps, AFunctionThatIsReplayedIsNotLeftAmid) {
  const auto ends = [](bool replayed) {
    StepLoop loop;
    const int32_t cache = loop.Older();
    size_t found = 0;
    for (int token = 0; token < 4; ++token) {
      if (replayed) loop.ReplayNext(22);
      int32_t x = loop.Call(kForward, {{cache}});
      found += loop.EndOfUnlikeStep() != 0;
      loop.Update(kUpdate, {Written(cache), {x}});
      for (int k = 0; k < 20; ++k) {
        x = loop.Call(kOther, {{x}});
        found += loop.EndOfUnlikeStep() != 0;
      }
    }
    return found;
  };
  EXPECT_GT(ends(/*replayed=*/false), 0);
  EXPECT_EQ(ends(/*replayed=*/true), 0);
}

TEST(UnlikeSteps, AStepOfFewCallsIsNone) {
  StepLoop loop;
  const int32_t weight = loop.Older();
  for (int step = 0; step < 8; ++step) EXPECT_EQ(Step(&loop, weight, 1 + step % 2, /*others=*/4), 0);
}

// Two weights are updated one after the other.
TEST(UnlikeSteps, EndBehindTheLastUpdate) {
  StepLoop loop;
  const int32_t one = loop.Older(), other = loop.Older();
  for (int step = 0; step < 3; ++step) {
    const int32_t hidden = loop.Call(kForward, {{one}, {loop.Older()}});
    EXPECT_EQ(loop.EndOfUnlikeStep(), step == 0 ? 0 : step == 1 ? 20 : 41);
    int32_t y = loop.Call(kBackward, {{other}, {hidden}});
    for (int k = 0; k < 16 + step; ++k) y = loop.Call(kOther, {{y}});
    loop.Update(kUpdate, {Written(one), {y}});
    loop.Update(kUpdate, {Written(other), {y}});
  }
}

// A momentum is updated amid the step as well, where more is handed over.
TEST(UnlikeSteps, EndWhereFewBytesAreHandedOver) {
  StepLoop loop;
  const int32_t weight = loop.Older(), other = loop.Older();
  for (int step = 0; step < 2; ++step) {
    const int32_t large = loop.Call(kForward, {{weight}, {other}}, /*result_bytes=*/1 << 20);
    EXPECT_EQ(loop.EndOfUnlikeStep(), step == 0 ? 0 : 18);
    loop.Update(kOther, {Written(weight), {large}});
    int32_t y = large;
    for (int k = 0; k < 15; ++k) y = loop.Call(kOther, {{y}, {large}});
    loop.Update(kUpdate, {Written(weight), {y}});
  }
}

TEST(UnlikeSteps, ATailTellsWhichStorageIsUpdated) {
  StepLoop loop;
  const int32_t one = loop.Older(), other = loop.Older();
  Step(&loop, one, 2);
  const uint64_t tail = loop.Tail();
  EXPECT_NE(tail, 0);
  Step(&loop, other, 2);
  EXPECT_NE(loop.Tail(), tail);
  Step(&loop, one, 3);
  EXPECT_EQ(loop.Tail(), tail);
  loop.Call(kOther, {{one}});
  EXPECT_EQ(loop.Tail(), 0);
}

}  // namespace
}  // namespace torch_lazy::lazy
