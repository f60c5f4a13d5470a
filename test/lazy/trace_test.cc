// SPDX-License-Identifier: Apache-2.0
// Which storages a program that waits at a place finds alive.
#include "lazy/trace/trace.h"

#include "lazy/trace/storage.h"
#include "test/lazy/recording.h"

namespace torch_lazy::lazy {
namespace {

using Values = std::vector<float>;

// Slots are those of tensors by their first use.
class AliveSlots : public RecordingTest {
 protected:
  static bool IsAlive(size_t slot, size_t end) {
    const std::shared_ptr<Trace> trace = PendingTrace();
    Locked lock(DeviceLock());
    return AliveAfter(*trace, end)(slot);
  }
  const at::Tensor weight_ = Holding(Values{1, 2}), gradient_ = Holding(Values{3, 4});
};

TEST_F(AliveSlots, WhatSomebodyHoldsIs) {
  const at::Tensor y = Mul(weight_, weight_);
  EXPECT_TRUE(IsAlive(0, 1));
  EXPECT_TRUE(IsAlive(1, 1));
}

TEST_F(AliveSlots, WhatDiesLaterIs) {
  at::Tensor y = Mul(weight_, weight_);
  const at::Tensor z = Mul(weight_, gradient_), u = Mul(weight_, gradient_);
  y = at::Tensor();
  EXPECT_TRUE(IsAlive(1, 1));
  EXPECT_TRUE(IsAlive(1, 2));
}

TEST_F(AliveSlots, WhatDiedEarlierIsNot) {
  at::Tensor y = Mul(weight_, weight_);
  y = at::Tensor();
  const at::Tensor z = Mul(weight_, gradient_);
  AddInPlace(weight_, gradient_);
  EXPECT_FALSE(IsAlive(1, 2));
  EXPECT_FALSE(IsAlive(1, 3));
}

// The program might have waited after the update, before y died.
TEST_F(AliveSlots, WhatDiesBeforeTheNextCallIs) {
  at::Tensor y = Mul(weight_, weight_);
  AddInPlace(weight_, gradient_);
  y = at::Tensor();
  EXPECT_TRUE(IsAlive(1, 2));
}

// y is made for the update alone.
TEST_F(AliveSlots, AnOptimizersTemporaryIsNot) {
  at::Tensor y = Mul(weight_, weight_);
  AddInPlace(weight_, y);
  y = at::Tensor();
  EXPECT_FALSE(IsAlive(1, 2));
}

// An update lies between y and the update that reads it: y is the step's, not the optimizer's.
TEST_F(AliveSlots, WhatWasMadeBeforeAnotherUpdateIs) {
  at::Tensor y = Mul(weight_, weight_);
  AddInPlace(gradient_, gradient_);
  AddInPlace(weight_, y);
  y = at::Tensor();
  EXPECT_TRUE(IsAlive(1, 3));
}

TEST_F(AliveSlots, AWrittenTemporaryIs) {
  const at::Tensor held = Mul(gradient_, gradient_);
  AddInPlace(weight_, held);
  at::Tensor y = Mul(weight_, weight_);
  AddInPlace(y, held);
  y = at::Tensor();
  EXPECT_TRUE(IsAlive(3, 4));
}

TEST_F(AliveSlots, WhereNothingIsUpdatedNoTemporaryIs) {
  at::Tensor y = Mul(weight_, weight_);
  const at::Tensor z = Mul(gradient_, gradient_);
  y = at::Tensor();
  EXPECT_FALSE(IsAlive(1, 2));
}

TEST_F(AliveSlots, AnUpdateWritesWhatIsOlderThanTheTrace) {
  const at::Tensor y = Mul(weight_, weight_);
  AddInPlace(y, weight_);
  AddInPlace(weight_, y);
  const std::shared_ptr<Trace> trace = PendingTrace();
  EXPECT_FALSE(trace->Updates(*trace->path[0]));
  EXPECT_FALSE(trace->Updates(*trace->path[1]));
  EXPECT_TRUE(trace->Updates(*trace->path[2]));
}

TEST_F(AliveSlots, NumbersAreTheRunsAndStructureIsTheNodes) {
  AddInPlace(weight_, gradient_, 2.5);
  const at::Tensor y = Add(weight_, gradient_, 3.5);
  const std::shared_ptr<Trace> trace = PendingTrace();
  EXPECT_EQ(trace->Argument(*trace->path[0], 2).toDouble(), 2.5);
  EXPECT_EQ(trace->Argument(*trace->path[1], 2).toDouble(), 3.5);
  EXPECT_TRUE(trace->Argument(*trace->path[1], 0).isNone());
}

}  // namespace
}  // namespace torch_lazy::lazy
