// SPDX-License-Identifier: Apache-2.0
// Which algorithm a product takes, with a library that only counts.
#include "lazy/tuned_cuda_product.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

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
    .candidates = [](void*) {
      std::vector<std::string> words;
      for (const auto& [word, seconds] : fake.seconds) {
        if (!word.empty()) words.push_back(word);
      }
      return words;
    },
    .choose = [](void*, const std::string& word) {
      fake.chosen = word;
      return word != "unknown";
    },
    .run = [](void*, const ProductTensors&) {
      if (fake.refuses) return false;
      fake.running = fake.chosen;
      ++fake.runs[fake.chosen];
      return true;
    },
    .seconds = [](const std::function<void()>& run, bool) {
      run();
      return fake.seconds[fake.running];
    },
    .is_capturing = [] { return fake.captures; },
};

class Tuned : public testing::Test {
 protected:
  Tuned() : product_(kFake, testing::UnitTest::GetInstance()->current_test_info()->name()) { fake = Fake(); }

  // What it ran by at last; "": ATen's way.
  std::string Run() {
    fake.running = "nothing";
    product_.Run(tensors_, [] {
      fake.running = "";
      ++fake.runs[""];
    });
    return fake.running;
  }

  ProductTensors tensors_{at::zeros({2, 2}), at::zeros({2, 2}), {}, at::zeros({2, 2})};
  TunedCudaProduct product_;
};

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

TEST(TunedCudaProduct, ThereIsNoneOnTheHost) {
  Geometry matrix;
  matrix.sizes = {4096, 4096};
  matrix.strides = {4096, 1};
  EXPECT_EQ(TunedCudaProduct::For(matrix, matrix, {}, matrix, /*is_relu=*/false), nullptr);
}

}  // namespace
}  // namespace torch_lazy::lazy
