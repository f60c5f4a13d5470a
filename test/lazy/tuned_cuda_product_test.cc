// SPDX-License-Identifier: Apache-2.0
// Which algorithm a product takes, with a library that only counts.
#include "lazy/libraries/tuned_cuda_product.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <latch>
#include <map>
#include <mutex>
#include <thread>

#include "lazy/cuda/philox.h"
#include "lazy/host/ledger.h"

namespace torch_lazy::lazy {
namespace {

struct Fake {
  std::map<std::string, double> seconds;  // of each algorithm, and of ATen's, ""
  bool captures = false, refuses = false, makes = true;
  std::string chosen, running;
  std::map<std::string, int> runs;
};
Fake fake;

constexpr CudaProducts kFake{
    .machine = [] { return std::to_string(getpid()); },
    .make = [](const ProductTensors&) -> void* { return fake.makes ? &fake : nullptr; },
    .candidates =
        [](void*) {
          std::vector<std::string> words;
          for (const auto& [word, seconds] : fake.seconds) {
            if (!word.empty()) words.push_back(word);
          }
          return words;
        },
    .choose =
        [](void*, const std::string& word) {
          fake.chosen = word;
          return word != "unknown";
        },
    .run =
        [](void*, const ProductTensors&) {
          if (fake.refuses) return false;
          fake.running = fake.chosen;
          ++fake.runs[fake.chosen];
          return true;
        },
    .seconds =
        [](const std::function<void()>& run, bool) {
          run();
          return fake.seconds[fake.running];
        },
    .is_capturing = [] { return fake.captures; },
};

class Tuned : public testing::Test {
 protected:
  Tuned()
      : choice_(std::to_string(getpid()) + testing::UnitTest::GetInstance()->current_test_info()->name()),
        product_(kFake, &choice_, kMost),
        alike_(kFake, &choice_, kMost) {
    fake = Fake();
  }

  static constexpr size_t kMost = 4;  // that are tried

  // What it ran by at last; "": ATen's way.
  std::string Run(TunedCudaProduct* product) {
    fake.running = "nothing";
    product->Run(tensors_, [] {
      fake.running = "";
      ++fake.runs[""];
    });
    return fake.running;
  }
  std::string Run() { return Run(&product_); }

  ProductTensors tensors_{at::zeros({2, 2}), at::zeros({2, 2}), {}, at::zeros({2, 2})};
  CudaProductChoice choice_;
  TunedCudaProduct product_, alike_;
};

TEST_F(Tuned, TriesTheFirstSoManyAlone) {
  fake.seconds = {{"", 1.0}, {"a", 0.99}, {"b", 0.98}, {"c", 0.99}, {"d", 0.9}, {"e", 0.1}};
  Run();
  EXPECT_EQ(Run(), "d");
  EXPECT_FALSE(fake.runs.contains("e"));
}

TEST_F(Tuned, TakesTheFastestFromTheSecondRunOn) {
  fake.seconds = {{"", 1.0}, {"a", 0.99}, {"b", 0.8}, {"c", 0.9}};
  EXPECT_EQ(Run(), "");
  EXPECT_EQ(fake.runs.size(), 1);
  EXPECT_EQ(Run(), "b");
  const std::map<std::string, int> runs = fake.runs;
  EXPECT_EQ(Run(), "b");
  EXPECT_EQ(fake.runs.at("b"), runs.at("b") + 1);
  EXPECT_EQ(fake.runs.at("a"), runs.at("a"));
}

TEST_F(Tuned, WhoIsFarBehindIsTriedOnce) {
  fake.seconds = {{"", 1.0}, {"a", 0.85}, {"b", 0.8}, {"c", 0.9}};
  Run();
  EXPECT_EQ(Run(), "b");
  EXPECT_EQ(fake.runs.at("a"), 2);
  EXPECT_EQ(fake.runs.at("b"), 3);  // it is what the second run takes, too
  EXPECT_EQ(fake.runs.at("c"), 1);
}

TEST_F(Tuned, NothingIsTriedAgainWhereNothingIsFaster) {
  fake.seconds = {{"", 1.0}, {"a", 0.98}, {"b", 1.2}};
  Run();
  EXPECT_EQ(Run(), "");
  EXPECT_EQ(fake.runs.at("a"), 1);
  EXPECT_EQ(fake.runs.at(""), 3);  // of which one is tried
}

TEST_F(Tuned, StaysWithAtensWhereLittleIsWon) {
  fake.seconds = {{"", 1.0}, {"a", 0.98}, {"unknown", 0.1}};
  for (int k = 0; k < 3; ++k) EXPECT_EQ(Run(), "");
}

TEST_F(Tuned, StaysWithAtensWhereThereIsNothingElse) {
  fake.seconds = {{"", 1.0}};
  for (int k = 0; k < 3; ++k) EXPECT_EQ(Run(), "");
}

TEST_F(Tuned, TriesNothingInACapture) {
  fake.seconds = {{"", 1.0}, {"a", 0.5}};
  fake.captures = true;
  for (int k = 0; k < 3; ++k) EXPECT_EQ(Run(), "");
  fake.captures = false;
  EXPECT_EQ(Run(), "");
  fake.captures = true;
  EXPECT_EQ(Run(), "");
  fake.captures = false;
  EXPECT_EQ(Run(), "a");
  fake.captures = true;
  EXPECT_EQ(Run(), "a");
}

TEST_F(Tuned, TriesNothingWhileAnotherThreadCaptures) {
  fake.seconds = {{"", 1.0}, {"a", 0.5}};
  Run();
  std::latch captures(1), ran(1);
  std::thread other([&] {
    const std::lock_guard<std::mutex> as_a_capture(DrawMutex());
    captures.count_down();
    ran.wait();
  });
  captures.wait();
  EXPECT_EQ(Run(), "");
  ran.count_down();
  other.join();
  EXPECT_EQ(Run(), "a");
}

TEST_F(Tuned, FallsBackWhereARunIsRefused) {
  fake.seconds = {{"", 1.0}, {"a", 0.5}};
  Run();
  EXPECT_EQ(Run(), "a");
  fake.refuses = true;
  EXPECT_EQ(Run(), "");
  fake.refuses = false;
  EXPECT_EQ(Run(), "a");
}

TEST_F(Tuned, WhatIsRefusedWhileItIsTriedDoesNotWin) {
  fake.seconds = {{"", 1.0}, {"a", 0.5}};
  fake.refuses = true;
  for (int k = 0; k < 3; ++k) EXPECT_EQ(Run(), "");
  fake.refuses = false;
  EXPECT_EQ(Run(), "");
}

TEST_F(Tuned, IsAtensWhereTheLibraryIsNotForIt) {
  fake.makes = false;
  fake.seconds = {{"", 1.0}, {"a", 0.5}};
  for (int k = 0; k < 3; ++k) EXPECT_EQ(Run(), "");
}

TEST_F(Tuned, AlikeSizesTryNothing) {
  fake.seconds = {{"", 1.0}, {"a", 0.9}, {"b", 0.8}};
  Run();
  EXPECT_EQ(Run(), "b");
  const std::map<std::string, int> runs = fake.runs;
  EXPECT_EQ(Run(&alike_), "b");
  EXPECT_EQ(fake.runs.at(""), runs.at(""));
  EXPECT_EQ(fake.runs.at("a"), runs.at("a"));
}

TEST_F(Tuned, TheSecondRunMayBeAnothersOfAlikeSize) {
  fake.seconds = {{"", 1.0}, {"a", 0.5}};
  EXPECT_EQ(Run(), "");
  EXPECT_EQ(Run(&alike_), "a");
  EXPECT_EQ(Run(), "a");
}

TEST_F(Tuned, StaysWithAtensWhereAnAlikeSizesAlgorithmDoesNotDo) {
  fake.seconds = {{"", 1.0}, {"a", 0.5}};
  Run();
  EXPECT_EQ(Run(), "a");
  choice_.word = "unknown";
  EXPECT_EQ(Run(&alike_), "");
}

TEST_F(Tuned, SavesWhatItTakesLess) {
  fake.seconds = {{"", 1.0}, {"a", 0.75}};
  Run();
  const Effort before = AccountOf(Venture::kCudaProducts).counted();
  for (int k = 0; k < 4; ++k) Run();
  const Effort after = AccountOf(Venture::kCudaProducts).counted();
  EXPECT_EQ(after.used - before.used, 4);
  EXPECT_EQ(after.saved_ns - before.saved_ns, 1'000'000'000);
}

TEST(TunedCudaProduct, NothingIsTriedWithoutCredit) {
  fake = Fake();
  fake.seconds = {{"", 1.0}, {"a", 0.5}};
  CudaProductChoice choice(std::to_string(getpid()) + "without credit");
  TunedCudaProduct product(kFake, &choice, 8);
  const ProductTensors tensors{at::zeros({2, 2}), at::zeros({2, 2}), {}, at::zeros({2, 2})};
  Account& account = AccountOf(Venture::kCudaProducts);
  account.Spend(1e6);
  EXPECT_FALSE(product.AwaitsTrial());
  for (int k = 0; k < 3; ++k) product.Run(tensors, [] { ++fake.runs[""]; });
  EXPECT_EQ(fake.runs, (std::map<std::string, int>{{"", 3}}));
  account.Save(1e6);
  EXPECT_TRUE(product.AwaitsTrial());
  product.Run(tensors, [] { ++fake.runs[""]; });
  EXPECT_EQ(fake.runs, (std::map<std::string, int>{{"", 4}}));  // the account rests
  while (!account.MayTry()) std::this_thread::yield();
  product.Run(tensors, [] { ++fake.runs[""]; });
  EXPECT_EQ(fake.running, "a");
  EXPECT_FALSE(product.AwaitsTrial());
}

TEST(TunedCudaProduct, ThereIsNoneOnTheHost) {
  Geometry matrix;
  matrix.sizes = {4096, 4096};
  matrix.strides = {4096, 1};
  EXPECT_EQ(TunedCudaProduct::For(matrix, matrix, {}, matrix, /*is_relu=*/false), nullptr);
}

}  // namespace
}  // namespace torch_lazy::lazy
