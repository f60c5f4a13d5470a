// SPDX-License-Identifier: Apache-2.0
// How many traces run in the program after one was taken back.
#include "lazy/cuts/stay.h"

#include <gtest/gtest.h>

namespace torch_lazy::lazy {
namespace {

int TracesThatStay(Stay* stay) {
  int traces = 0;
  while (stay->Ask()) ++traces;
  return traces;
}

TEST(Stay, EachTimeInVainMakesThemTwiceAsMany) {
  Stay stay;
  EXPECT_EQ(TracesThatStay(&stay), 0);
  for (const int traces : {64, 128, 256, 512}) {
    stay.Begin();
    EXPECT_TRUE(stay.is_on());
    EXPECT_EQ(TracesThatStay(&stay), traces - 1);  // the last asks the thread
    EXPECT_FALSE(stay.is_on());
  }
}

TEST(Stay, AThreadThatIsOfUseIsAskedSoonAgain) {
  Stay stay;
  for (int k = 0; k < 4; ++k) {
    stay.Begin();
    TracesThatStay(&stay);
  }
  for (int k = 0; k < 64; ++k) EXPECT_FALSE(stay.Ask());
  stay.Begin();
  EXPECT_EQ(TracesThatStay(&stay), 63);
}

TEST(Stay, AFewThatAreNotTakenBackShowNothing) {
  Stay stay;
  stay.Begin();
  TracesThatStay(&stay);
  for (int k = 0; k < 63; ++k) EXPECT_FALSE(stay.Ask());
  stay.Begin();
  EXPECT_EQ(TracesThatStay(&stay), 127);
}

}  // namespace
}  // namespace torch_lazy::lazy
