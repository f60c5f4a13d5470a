// SPDX-License-Identifier: Apache-2.0
// What may be tried, as costs and savings come in.
#include "lazy/host/ledger.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

namespace torch_lazy::lazy {
namespace {

TEST(Account, TriesUntilItsCreditIsSpent) {
  Account account(Venture::kCudaGraphs, 10);
  account.Spend(9);
  EXPECT_TRUE(account.MayTry());
  account.Spend(2);
  EXPECT_FALSE(account.MayTry());
}

TEST(Account, SpendsWhatItHasSaved) {
  Account account(Venture::kCudaGraphs, 0);
  EXPECT_FALSE(account.MayTry());
  account.Save(3);
  EXPECT_TRUE(account.MayTry());
  account.Spend(3);
  EXPECT_FALSE(account.MayTry());
}

TEST(Account, WhatIsNoTimeCountsForNothing) {
  Account account(Venture::kCudaGraphs, 1);
  for (const double seconds : {-5.0, 0.0, std::nan(""), static_cast<double>(INFINITY)}) {
    account.Spend(seconds);
    account.Save(seconds);
  }
  EXPECT_TRUE(account.MayTry());
  account.Spend(1);
  EXPECT_FALSE(account.MayTry());
}

TEST(Account, KnowsWhatAThreadHasSaved) {
  Account account(Venture::kCudaGraphs, 0);
  const double before = account.SavedHere();
  account.Save(2);
  std::thread([&] { account.Save(5); }).join();
  EXPECT_DOUBLE_EQ(account.SavedHere() - before, 2);
}

TEST(Account, OthersDoNotPay) {
  EXPECT_TRUE(AccountOf(Venture::kCudaGraphs).MayTry());
  AccountOf(Venture::kProducts).Spend(1e6);
  EXPECT_FALSE(AccountOf(Venture::kProducts).MayTry());
  EXPECT_TRUE(AccountOf(Venture::kCudaGraphs).MayTry());
}

}  // namespace
}  // namespace torch_lazy::lazy
