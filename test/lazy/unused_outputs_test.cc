// SPDX-License-Identifier: Apache-2.0
// When an entry returns too much for the cuts that it serves.
#include "lazy/variants/unused_outputs.h"

#include <gtest/gtest.h>

namespace torch_lazy::lazy {
namespace {

using Slots = std::vector<bool>;
constexpr size_t kMegabyte = 1 << 20;

class UnusedOutputsTest : public testing::Test {
 protected:
  // Three results of these sizes.
  UnusedOutputsTest() {
    for (const size_t size_bytes : {kMegabyte, kMegabyte, size_t{4}})
      trace_.slots.emplace_back().size_bytes = size_bytes;
  }
  bool AreMany(const Slots& live) { return unused_.AreMany(trace_, live, /*returned=*/{true, true, true}); }

  Trace trace_;
  UnusedOutputs unused_;
};

TEST_F(UnusedOutputsTest, TheSecondCutInARowTells) {
  EXPECT_FALSE(AreMany({false, true, true}));
  EXPECT_TRUE(AreMany({false, true, true}));
}

TEST_F(UnusedOutputsTest, ACutThatNeedsAllBeginsAnew) {
  EXPECT_FALSE(AreMany({false, true, true}));
  EXPECT_FALSE(AreMany({true, true, true}));
  EXPECT_FALSE(AreMany({false, true, true}));
  EXPECT_TRUE(AreMany({false, true, true}));
}

TEST_F(UnusedOutputsTest, WhatAnyOfTheCutsNeededIsNeeded) {
  EXPECT_FALSE(AreMany({false, true, false}));
  EXPECT_TRUE(AreMany({false, false, true}));
  EXPECT_EQ(unused_.needed(), (Slots{false, true, true}));
}

TEST_F(UnusedOutputsTest, AFewBytesDoNotMatter) {
  for (int cut = 0; cut < 4; ++cut) EXPECT_FALSE(AreMany({true, true, false}));
}

TEST_F(UnusedOutputsTest, NorDoesASmallPart) {
  trace_.slots[1].size_bytes = 15 * kMegabyte + 16;
  for (int cut = 0; cut < 4; ++cut) EXPECT_FALSE(AreMany({false, true, true})) << cut;
}

TEST_F(UnusedOutputsTest, ASixteenthIsEnough) {
  trace_.slots[1].size_bytes = 15 * kMegabyte - 4;
  EXPECT_FALSE(AreMany({false, true, true}));
  EXPECT_TRUE(AreMany({false, true, true}));
}

TEST_F(UnusedOutputsTest, WhatIsNotReturnedIsNotUnused) {
  for (int cut = 0; cut < 4; ++cut) {
    EXPECT_FALSE(unused_.AreMany(trace_, {false, true, true}, /*returned=*/{false, true, true}));
  }
}

TEST_F(UnusedOutputsTest, OnlyAProgramsBeginningIsLookedAt) {
  for (int cut = 0; cut < 63; ++cut) EXPECT_FALSE(AreMany({true, true, true}));
  EXPECT_FALSE(AreMany({false, true, true}));
  EXPECT_FALSE(AreMany({false, true, true}));
}

}  // namespace
}  // namespace torch_lazy::lazy
