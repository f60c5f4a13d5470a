// SPDX-License-Identifier: Apache-2.0
#include "base/spare_processors.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <thread>

namespace torch_lazy::base {
namespace {

using std::chrono::milliseconds;

cpu_set_t Processors(std::initializer_list<int> numbers) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int number : numbers) CPU_SET(number, &set);
  return set;
}

constexpr char kStat[] =
    "cpu  100 20 30 4000 1 0 2 0 0 0\n"
    "cpu0 50 5 15 1000 1 0 1 0 0 0\n"
    "cpu1 50 7 15 2000 0 0 1 0 0 0\n"
    "cpu12 50 8 15 1000 0 0 1 0 0 0\n"
    "intr 7\n"
    "cpu3 1 1 1 1\n";

TEST(IdleTicks, OfTheAllowedProcessors) {
  EXPECT_EQ(IdleTicks(kStat, Processors({0, 1, 12})), 4020);
  EXPECT_EQ(IdleTicks(kStat, Processors({12})), 1008);
}

TEST(IdleTicks, UnknownUnlessAllAreNamed) {
  EXPECT_EQ(IdleTicks(kStat, Processors({0, 2})), std::nullopt);
  EXPECT_EQ(IdleTicks(kStat, Processors({3})), std::nullopt);  // not among the processors' lines
  EXPECT_EQ(IdleTicks("", Processors({0})), std::nullopt);
  EXPECT_EQ(IdleTicks("cpu0 1 2\n", Processors({0})), std::nullopt);
  EXPECT_EQ(IdleTicks("cpu0 1 2 3 four\n", Processors({0})), std::nullopt);
  EXPECT_EQ(IdleTicks(kStat, Processors({})), std::nullopt);
}

TEST(SpareProcessors, IsTheMeanSinceTheLastQuestion) {
  std::optional<double> seconds = 7;
  int questions = 0;
  SpareProcessors spare([&] { return ++questions, seconds; });
  const SpareProcessors::Clock::time_point start = SpareProcessors::Clock::now();
  EXPECT_EQ(spare.Number(start), 0);
  seconds = 7.5;
  EXPECT_EQ(spare.Number(start + milliseconds(50)), 0);  // too soon
  EXPECT_EQ(questions, 1);
  EXPECT_DOUBLE_EQ(spare.Number(start + milliseconds(250)), 2);
  EXPECT_DOUBLE_EQ(spare.Number(start + milliseconds(300)), 2);
  EXPECT_EQ(questions, 2);
  seconds = 7.6;
  EXPECT_NEAR(spare.Number(start + milliseconds(450)), 0.5, 1e-9);
}

TEST(SpareProcessors, ZeroWhereItIsNotKnown) {
  std::optional<double> seconds = 7;
  SpareProcessors spare([&] { return seconds; });
  const SpareProcessors::Clock::time_point start = SpareProcessors::Clock::now();
  spare.Number(start);
  seconds = 100;
  EXPECT_EQ(spare.Number(start + milliseconds(1500)), 0);  // nobody has asked for long
  seconds.reset();
  EXPECT_EQ(spare.Number(start + milliseconds(1700)), 0);
  seconds = 101;
  EXPECT_EQ(spare.Number(start + milliseconds(1900)), 0);
}

// A thread that keeps a processor busy does not count as one that takes it.
TEST(SpareProcessors, OfThisMachineIsNoMoreThanItHas) {
  SpareProcessors spare;
  spare.Number();
  const auto end = SpareProcessors::Clock::now() + milliseconds(150);
  while (SpareProcessors::Clock::now() < end) continue;
  const double number = spare.Number();
  EXPECT_GT(number, 0);
  EXPECT_LT(number, std::thread::hardware_concurrency() + 0.5);
}

}  // namespace
}  // namespace torch_lazy::base
