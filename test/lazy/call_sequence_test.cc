// SPDX-License-Identifier: Apache-2.0
// What is known of the calls up to a node, for slots of which some are needed.
#include "lazy/trace/call_sequence.h"

#include <ATen/Context.h>

#include "test/lazy/recording.h"

namespace torch_lazy::lazy {
namespace {

using Slots = std::vector<int32_t>;

class CallSequences : public RecordingTest {
 protected:
  // x (slot 0), y = x * x (1), z = y + x (2), w = z * z (3)
  CallSequence Sequence(std::vector<bool> live) {
    const at::Tensor y = Mul(x_, x_), z = Add(y, x_), w = Mul(z, z);
    return CallSequence(PendingTrace()->at->node, std::move(live));
  }
  static Slots EndAfter(const CallSequence& calls, size_t k) {
    return {calls.EndAfter(k).begin(), calls.EndAfter(k).end()};
  }
  const at::Tensor x_ = Holding(std::vector<float>{1, 2});
};

TEST_F(CallSequences, CallsComeInTheProgramsOrder) {
  const CallSequence calls = Sequence({true, true, true, true});
  ASSERT_EQ(calls.calls().size(), 3);
  EXPECT_EQ(calls.calls()[0]->op->name, "aten::mul.Tensor");
  EXPECT_EQ(calls.calls()[1]->op->name, "aten::add.Tensor");
  EXPECT_EQ(calls.calls()[2]->depth, 3);
}

TEST_F(CallSequences, ASlotEndsAfterItsLastUse) {
  const CallSequence calls = Sequence({false, false, false, true});
  EXPECT_EQ(EndAfter(calls, 0), Slots{});
  EXPECT_EQ(EndAfter(calls, 1), (Slots{0, 1}));
  EXPECT_EQ(EndAfter(calls, 2), Slots{2});
}

TEST_F(CallSequences, WhatIsNeededDoesNotEnd) {
  const CallSequence calls = Sequence({true, true, true, true});
  for (size_t k = 0; k < 3; ++k) EXPECT_EQ(EndAfter(calls, k), Slots{}) << k;
}

TEST_F(CallSequences, AResultThatNobodyReadsEndsAfterItsCall) {
  const CallSequence calls = Sequence({true, true, true, false});
  EXPECT_EQ(EndAfter(calls, 2), Slots{3});
}

TEST_F(CallSequences, NoneIsLeftToAtenAtFirst) {
  CallSequence calls = Sequence({true, true, true, true});
  EXPECT_FALSE(calls.IsLeftToAten(1));
  calls.LeaveToAten({false, true, false});
  EXPECT_FALSE(calls.IsLeftToAten(0));
  EXPECT_TRUE(calls.IsLeftToAten(1));
}

TEST_F(CallSequences, DeterminismIsThatOfTheFirstCall) {
  EXPECT_FALSE(Sequence({true, true, true, true}).IsDeterministic());
  EXPECT_FALSE(CallSequence(CurrentTrie()->root(), {}).IsDeterministic());
  at::globalContext().setDeterministicAlgorithms(true, false);
  EXPECT_TRUE(Sequence({true, true, true, true}).IsDeterministic());
  at::globalContext().setDeterministicAlgorithms(false, false);
}

}  // namespace
}  // namespace torch_lazy::lazy
