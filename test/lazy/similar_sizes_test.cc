// SPDX-License-Identifier: Apache-2.0
#include "lazy/libraries/similar_sizes.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace torch_lazy::lazy {
namespace {

std::string Word(std::vector<int64_t> numbers, bool aligned = false, int parts = 2) {
  return SimilarWord(numbers, parts, aligned);
}

TEST(SimilarSizes, AreNearOnALogarithmicScale) {
  EXPECT_EQ(Word({1000, 33}), Word({1020, 30}));
  EXPECT_NE(Word({1000, 33}), Word({1000, 24}));
  EXPECT_NE(Word({1000, 33}), Word({33, 1000}));
  EXPECT_NE(Word({1000, 33}), Word({1000, 33}, false, 4));
}

TEST(SimilarSizes, OfFourOctavesAreAFewClasses) {
  std::set<std::string> words;
  for (int64_t extent = 32; extent <= 512; ++extent) words.insert(Word({8, extent}));
  EXPECT_EQ(words.size(), 9);
}

TEST(SimilarSizes, ZeroAndOneAreLikeNoOther) {
  const std::set<std::string> words = {Word({0}), Word({1}), Word({2}), Word({0}, true), Word({1}, true)};
  EXPECT_EQ(words.size(), 3);
}

TEST(SimilarSizes, AreAlignedAlike) {
  EXPECT_EQ(Word({768}, true), Word({776}, true));
  EXPECT_NE(Word({768}, true), Word({769}, true));
  EXPECT_NE(Word({772}, true), Word({770}, true));
  EXPECT_EQ(Word({768}), Word({769}));
}

}  // namespace
}  // namespace torch_lazy::lazy
