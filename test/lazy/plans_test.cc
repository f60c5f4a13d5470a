// SPDX-License-Identifier: Apache-2.0
#include "lazy/run/plans.h"

#include <unistd.h>

#include <future>

#include "absl/strings/str_cat.h"
#include "base/flags.h"
#include "gtest/gtest.h"
#include "ir/parse.h"
#include "lazy/host/background.h"

namespace torch_lazy::lazy {
namespace {

// A former run's notes of plans would say that kernels are there.
class OwnCache : public testing::Environment {
  void SetUp() override {
    const std::string folder = absl::StrCat(testing::TempDir(), "plans_", getpid());
    ASSERT_TRUE(base::SetOption("cache_dir", folder).ok());
  }
};
[[maybe_unused]] const auto* const own_cache = testing::AddGlobalTestEnvironment(new OwnCache);

// Of four nodes. Different constants, different graphs.
ir::Graph GraphOf(int constant) {
  return *ir::Parse(absl::StrCat("graph @g(%x: f32[s0]) {\n  %0 = const {value=", constant, "} : f32[]\n",
                                 "  %1 = reshape %0 : f32[1]\n  %2 = expand %1 : f32[s0]\n",
                                 "  %3 = mul %x, %2 : f32[s0]\n  return %3\n}"));
}

std::shared_ptr<PlannedGraph> Plan(int constant, bool* known, bool deterministic = false) {
  LoweredTrace lowered;
  lowered.graph = GraphOf(constant);
  lowered.symbols = {7};
  return PlanOf(&lowered, deterministic, known);
}

void AwaitBackground() {
  std::promise<void> done;
  InBackground([&] { done.set_value(); });
  done.get_future().wait();
}

TEST(Plans, EqualGraphsShareOne) {
  bool known = true;
  const auto one = Plan(1, &known);
  EXPECT_FALSE(known);
  EXPECT_EQ(Plan(1, &known), one);
  EXPECT_TRUE(known);
  EXPECT_NE(Plan(2, &known), one);
  EXPECT_FALSE(known);
}

// Which sizes a plan is made for must not depend on what ran before in other settings.
TEST(Plans, DeterministicOnesAreApart) {
  bool known = true;
  const auto usual = Plan(3, &known), deterministic = Plan(3, &known, /*deterministic=*/true);
  EXPECT_FALSE(known);
  EXPECT_NE(usual, deterministic);
  EXPECT_EQ(Plan(3, &known, /*deterministic=*/true), deterministic);
  EXPECT_EQ(Plan(3, &known), usual);
}

// The first cut has it compiled, and waits.
TEST(Plans, DeterministicOnesAreWaitedFor) {
  bool known = true;
  const auto usual = Plan(4, &known), deterministic = Plan(4, &known, /*deterministic=*/true);
  EXPECT_FALSE(usual->Want({7}, 1));
  EXPECT_TRUE(deterministic->Want({7}, 1));
  ASSERT_TRUE(base::SetOption("compile", "off").ok());
  EXPECT_FALSE(deterministic->Want({7}, 1));
  ASSERT_TRUE(base::SetOption("compile", "async").ok());
}

TEST(Plans, AreForgottenBeyondSoManyNodes) {
  ASSERT_TRUE(base::SetOption("max_known_ops", "40").ok());
  bool known = true;
  auto kept = Plan(10, &known);
  const std::weak_ptr<PlannedGraph> dropped = Plan(11, &known);
  for (int constant = 12; constant < 40; ++constant) Plan(constant, &known);
  AwaitBackground();
  EXPECT_TRUE(dropped.expired());
  EXPECT_EQ(kept.use_count(), 1);
  EXPECT_EQ(kept->graph(), GraphOf(10));
  EXPECT_NE(Plan(10, &known), kept);
  EXPECT_FALSE(known);
  ASSERT_TRUE(base::SetOption("max_known_ops", "524288").ok());
}

}  // namespace
}  // namespace torch_lazy::lazy
