// SPDX-License-Identifier: Apache-2.0
// When plans are captured, for runs that come in many ways. A capture costs 8 replays' savings of 1 s.
#include "lazy/variants/cuda_graph_choice.h"

#include <gtest/gtest.h>

namespace torch_lazy::lazy {
namespace {

constexpr double kLaunched = 1.5, kReplayed = 0.5, kCaptured = 8;

class Choice : public testing::Test {
 protected:
  // Runs until it is captured, `apart` from each other; `most`: it was not.
  int RunsUntilCaptured(int64_t apart, int most = 1000) {
    for (int run = 1; run < most; ++run) {
      if (choice_.Ask(now_ += apart)) {
        choice_.Captured(kCaptured);
        return run;
      }
      choice_.Launched(kLaunched);
    }
    return most;
  }

  void Replay(int times) {
    for (int k = 0; k < times; ++k) choice_.Replayed(kReplayed);
  }

  int64_t now_ = 0;
  Account account_{"test", 2 * kCaptured};
  CudaGraphChoice choice_{&account_};
};

TEST_F(Choice, InALoopTheThirdRun) { EXPECT_EQ(RunsUntilCaptured(1), 3); }

TEST_F(Choice, InALoopOfManyPlansToo) { EXPECT_EQ(RunsUntilCaptured(32), 3); }

TEST_F(Choice, SeldomRunsWait) { EXPECT_EQ(RunsUntilCaptured(33), 32); }

TEST_F(Choice, ALoopThatBeginsLate) {
  choice_.Ask(now_ = 1);
  now_ = 100000;
  EXPECT_EQ(RunsUntilCaptured(1), 3);
}

TEST_F(Choice, WhatDidNotPayWaitsTwiceAsLong) {
  account_.Save(1000);
  EXPECT_EQ(RunsUntilCaptured(1), 3);
  Replay(4);
  choice_.Dropped();
  EXPECT_EQ(RunsUntilCaptured(1), 6);
  choice_.Dropped();
  EXPECT_EQ(RunsUntilCaptured(1), 12);
  Replay(8);  // as often as pays
  choice_.Dropped();
  EXPECT_EQ(RunsUntilCaptured(1), 3);
}

TEST_F(Choice, WithoutCreditEachPaysForItself) {
  account_.Spend(1000);
  EXPECT_FALSE(choice_.MayRepeat());
  EXPECT_EQ(RunsUntilCaptured(1), 32);
  Replay(4);
  choice_.Dropped();
  EXPECT_EQ(RunsUntilCaptured(1), 64);
}

TEST_F(Choice, WhatSavesNothingIsNotCapturedAgain) {
  EXPECT_EQ(RunsUntilCaptured(1), 3);
  account_.Spend(1000);
  for (int k = 0; k < 100; ++k) choice_.Replayed(kLaunched);
  choice_.Dropped();
  EXPECT_EQ(RunsUntilCaptured(1, 500), 500);
}

TEST_F(Choice, ReplaysPayForOthers) {
  EXPECT_EQ(RunsUntilCaptured(1), 3);
  EXPECT_TRUE(account_.MayTry());
  account_.Spend(kCaptured);
  EXPECT_FALSE(account_.MayTry());
  Replay(1);
  EXPECT_TRUE(account_.MayTry());
}

}  // namespace
}  // namespace torch_lazy::lazy
