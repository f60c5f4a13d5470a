// SPDX-License-Identifier: Apache-2.0
// Note [Pure steps]: loops that only compute, on a machine with a GPU's kernels.
#include <gtest/gtest.h>

#include "lazy/trace/step_detector.h"
#include "lazy/trace/storage.h"
#include "test/lazy/fake_backend.h"
#include "test/lazy/step_loop.h"

namespace torch_lazy::lazy {
namespace {

[[maybe_unused]] const bool is_for_gpu = [] {
  backends::Fake().made_for = codegen::Target::kCuda;
  return true;
}();

enum : int64_t { kHidden, kLogits, kUpdate };
constexpr size_t kMegabyte = 1 << 20;

class PureSteps : public testing::Test {
 protected:
  struct Sizes {
    size_t hidden = 192 * kMegabyte, logits = 64 * kMegabyte;
  };
  // hidden = f(w, batch), which nobody keeps; logits = g(w, hidden), which somebody does.
  void InferenceStep(Sizes sizes) {
    const int32_t hidden = loop_.Call(kHidden, {{weight_}, {loop_.Older()}}, sizes.hidden);
    const int32_t logits = loop_.Call(kLogits, {{weight_}, {hidden}}, sizes.logits);
    loop_.SetOwner(logits, held());
  }
  LazyStorageImpl* held() { return LazyStorageImpl::Of(storage_.unsafeGetStorageImpl()); }
  // What closes with the second of two such steps.
  ClosedStep AfterTwo(Sizes sizes) {
    InferenceStep(sizes);
    EXPECT_EQ(loop_.Advance().period, 0);
    InferenceStep(sizes);
    return loop_.Advance();
  }

  const c10::Storage storage_ = MakeStorage(size_t{4});
  StepLoop loop_;
  const int32_t weight_ = loop_.Older();
};

TEST_F(PureSteps, InferenceOverBatchesHasThem) {
  const ClosedStep closed = AfterTwo({});
  EXPECT_EQ(closed.period, 2);
  EXPECT_TRUE(closed.is_pure);
}

TEST_F(PureSteps, SmallOnesDoNotCount) { EXPECT_EQ(AfterTwo({.hidden = 192 * kMegabyte - 1}).period, 0); }

// A GPU works on some while more are recorded.
TEST_F(PureSteps, ManySmallOnesAreOne) {
  for (int step = 1; step < 128; ++step) {
    InferenceStep({.hidden = 8, .logits = 4});
    EXPECT_EQ(loop_.Advance().period, 0) << step;
  }
  InferenceStep({.hidden = 8, .logits = 4});
  const ClosedStep closed = loop_.Advance();
  EXPECT_EQ(closed.period, 128);
  EXPECT_TRUE(closed.is_pure);
}

TEST_F(PureSteps, SmallOnesOfManyCallsCount) {
  const auto step = [&] {
    int32_t hidden = loop_.Call(0, {{weight_}, {loop_.Older()}});
    for (int64_t call = 1; call < 150; ++call) hidden = loop_.Call(call, {{weight_}, {hidden}});
    loop_.SetOwner(hidden, held());
    return loop_.Advance();
  };
  EXPECT_EQ(step().period, 0);
  EXPECT_EQ(step().period, 150);
}

TEST_F(PureSteps, HalfOfTheBytesMayBeHeld) {
  EXPECT_EQ(AfterTwo({.hidden = 128 * kMegabyte, .logits = 128 * kMegabyte}).period, 2);
}

// More than half is kept: a forward pass whose backward pass comes later.
TEST_F(PureSteps, ForwardPassesAreNone) {
  EXPECT_EQ(AfterTwo({.hidden = 127 * kMegabyte, .logits = 129 * kMegabyte}).period, 0);
}

TEST_F(PureSteps, SomethingIsHeld) {
  for (int step = 0; step < 4; ++step) {
    const int32_t hidden = loop_.Call(kHidden, {{weight_}, {loop_.Older()}}, 192 * kMegabyte);
    loop_.Call(kLogits, {{weight_}, {hidden}}, 64 * kMegabyte);
    EXPECT_EQ(loop_.Advance().period, 0) << step;
  }
}

// logits = g(hidden of the step before).
TEST_F(PureSteps, NothingFlowsFromOneToTheNext) {
  int32_t hidden = loop_.Call(kHidden, {{weight_}, {loop_.Older()}}, 192 * kMegabyte);
  for (int step = 0; step < 4; ++step) {
    const int32_t next = loop_.Call(kHidden, {{weight_}, {loop_.Older()}}, 192 * kMegabyte);
    loop_.SetOwner(loop_.Call(kLogits, {{weight_}, {hidden}}, 64 * kMegabyte), held());
    EXPECT_EQ(loop_.Advance().period, 0) << step;
    hidden = next;
  }
}

// f_out(w, batch, out=empty): memory that nobody had filled is made by the step.
TEST_F(PureSteps, MemoryThatNobodyHadFilledIsAResult) {
  for (int step = 0; step < 2; ++step) {
    const int32_t hidden = loop_.Empty(192 * kMegabyte);
    loop_.Update(kHidden, {{weight_}, StepLoop::Written(hidden)});
    loop_.SetOwner(loop_.Call(kLogits, {{weight_}, {hidden}}, 64 * kMegabyte), held());
    EXPECT_EQ(loop_.Advance().period, step == 0 ? 0 : 2);
  }
}

// Something older is written: a step like any other.
TEST_F(PureSteps, AnUpdateIsNotPure) {
  ClosedStep closed;
  for (int step = 0; step < 2; ++step) {
    const int32_t hidden = loop_.Call(kHidden, {{weight_}, {loop_.Older()}}, 192 * kMegabyte);
    loop_.SetOwner(loop_.Call(kLogits, {{weight_}, {hidden}}, 64 * kMegabyte), held());
    loop_.Update(kUpdate, {StepLoop::Written(weight_)});
    closed = loop_.Advance();
  }
  EXPECT_EQ(closed.period, 3);
  EXPECT_FALSE(closed.is_pure);
}

}  // namespace
}  // namespace torch_lazy::lazy
