// SPDX-License-Identifier: Apache-2.0
// After how many runs in a row an effort is worth it.
#include "lazy/host/patience.h"

#include <gtest/gtest.h>

namespace torch_lazy::lazy {
namespace {

// Runs until it is worth an effort that three in a row are at first worth.
int64_t RunsUntilWorth(Patience* patience) {
  do patience->Run();
  while (!patience->IsWorth(3));
  return patience->runs();
}

TEST(Patience, WaitsForSoManyInARow) {
  Patience patience;
  EXPECT_EQ(RunsUntilWorth(&patience), 3);
  patience.Run();
  EXPECT_TRUE(patience.IsWorth(3));
  EXPECT_FALSE(patience.IsWorth(5));
}

TEST(Patience, ARowThatEndsBeginsAnew) {
  Patience patience;
  patience.Run();
  patience.Run();
  patience.StartOver();
  EXPECT_EQ(RunsUntilWorth(&patience), 3);
}

TEST(Patience, EachDisappointmentDoublesIt) {
  Patience patience;
  for (const int64_t runs : {3, 6, 12, 24}) {
    EXPECT_EQ(RunsUntilWorth(&patience), runs);
    patience.Disappoint();
  }
}

TEST(Patience, ARewardMakesUpForAllOfThem) {
  Patience patience;
  for (int k = 0; k < 5; ++k) patience.Disappoint();
  EXPECT_EQ(patience.times(), 32);
  patience.Reward();
  EXPECT_EQ(patience.times(), 1);
  EXPECT_EQ(RunsUntilWorth(&patience), 3);
}

TEST(Patience, DoesNotWaitForEver) {
  Patience patience;
  for (int k = 0; k < 100; ++k) patience.Disappoint();
  EXPECT_EQ(RunsUntilWorth(&patience), 1 << 16);
}

}  // namespace
}  // namespace torch_lazy::lazy
