// SPDX-License-Identifier: Apache-2.0
// What may be tried, as costs and savings come in; and what is told of it.
#include "lazy/host/ledger.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

namespace torch_lazy::lazy {
namespace {

TEST(Account, TriesUntilItsCreditIsSpent) {
  Account account("test", 10);
  account.Spend(9);
  EXPECT_TRUE(account.MayTry());
  account.Spend(2);
  EXPECT_FALSE(account.MayTry());
}

TEST(Account, TriesWhatItCanPay) {
  Account account("test", 10);
  EXPECT_TRUE(account.MayTry(9));
  EXPECT_FALSE(account.MayTry(10));
  account.Save(1);
  EXPECT_TRUE(account.MayTry(10));
}

TEST(Account, SpendsWhatItHasSaved) {
  Account account("test", 0);
  EXPECT_FALSE(account.MayTry());
  account.Save(3);
  EXPECT_TRUE(account.MayTry());
  account.Spend(3);
  EXPECT_FALSE(account.MayTry());
}

TEST(Account, RestsAfterWhatItHasSpent) {
  Account account("test", 10, /*share_of_time=*/0, /*pace=*/0.5);
  EXPECT_TRUE(account.MayTry());
  account.Spend(1);
  EXPECT_FALSE(account.MayTry());
  EXPECT_TRUE(account.HasLeft());
  while (!account.MayTry()) std::this_thread::yield();
  account.Spend(9);
  EXPECT_FALSE(account.HasLeft());
}

TEST(Account, WhatIsNoTimeCountsForNothing) {
  Account account("test", 1);
  for (const double seconds : {-5.0, 0.0, std::nan(""), static_cast<double>(INFINITY)}) {
    account.Spend(seconds);
    account.Save(seconds);
  }
  EXPECT_TRUE(account.MayTry());
  account.Spend(1);
  EXPECT_FALSE(account.MayTry());
}

TEST(Account, CountsAttemptsAndRuns) {
  Account account("test", 0);
  account.Spend(2);
  account.Spend(0);
  for (const double seconds : {0.5, 0.0, 0.25}) account.Save(seconds);
  const Effort effort = account.counted();
  EXPECT_EQ(effort.tried, 2);
  EXPECT_EQ(effort.used, 3);
  EXPECT_EQ(effort.spent_ns, 2'000'000'000);
  EXPECT_EQ(effort.saved_ns, 750'000'000);
}

// What other threads save, or what is saved before and after, is not repeated.
TEST(Savings, AreWhatAThreadSaves) {
  Account account("test", 0), other("other", 0);
  Savings savings;
  account.Save(1);
  {
    const Savings::Noting noting(&savings);
    account.Save(2);
    other.Save(0);
    account.Save(3);
    std::thread([&] { account.Save(5); }).join();
  }
  account.Save(1);
  savings.Repeat();
  EXPECT_EQ(account.counted().used, 5 + 2);
  EXPECT_EQ(account.counted().saved_ns, (12 + 5) * int64_t{1'000'000'000});
  EXPECT_EQ(other.counted().used, 2);
  EXPECT_EQ(other.counted().saved_ns, 0);
}

Effort Told(const std::string& name) {
  for (const auto& [told, effort] : Efforts()) {
    if (told == name) return effort;
  }
  ADD_FAILURE() << "nothing is told of " << name;
  return {};
}

TEST(Ledger, TellsOfEachAccount) {
  const std::vector<std::pair<std::string, Effort>> efforts = Efforts();
  ASSERT_GE(efforts.size(), 4);
  EXPECT_EQ(efforts[static_cast<size_t>(Venture::kProducts)].first, "products");
  EXPECT_EQ(efforts[static_cast<size_t>(Venture::kCudaGraphs)].first, "cuda_graphs");
  AccountOf("a new effort").Spend(1);
  EXPECT_EQ(Told("a new effort").tried, 1);
  EXPECT_EQ(&AccountOf("a new effort"), &AccountOf("a new effort"));
  EXPECT_EQ(&AccountOf("products"), &AccountOf(Venture::kProducts));
}

// A program looks at a part of itself: that gives nobody a credit.
TEST(Ledger, AResetForgetsWhatIsToldAlone) {
  Account& account = AccountOf(Venture::kCudaGraphs);
  account.Spend(3);
  account.Save(1);
  ResetEfforts();
  EXPECT_FALSE(account.MayTry());
  EXPECT_EQ(Told("cuda_graphs").tried, 0);
  account.Save(2);
  EXPECT_TRUE(account.MayTry());
  EXPECT_EQ(Told("cuda_graphs").used, 1);
  EXPECT_EQ(Told("cuda_graphs").saved_ns, 2'000'000'000);
}

TEST(Account, OthersDoNotPay) {
  EXPECT_TRUE(AccountOf(Venture::kCudaGraphs).MayTry());
  AccountOf(Venture::kProducts).Spend(1e6);
  EXPECT_FALSE(AccountOf(Venture::kProducts).MayTry());
  EXPECT_TRUE(AccountOf(Venture::kCudaGraphs).MayTry());
}

}  // namespace
}  // namespace torch_lazy::lazy
