// SPDX-License-Identifier: Apache-2.0
// Which way a trace runs: with variants that do what the test says, in the place of those of the list.
#include "lazy/variants/variants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_split.h"
#include "base/flags.h"
#include "codegen/passes/pipeline.h"
#include "ir/passes/pipeline.h"
#include "lazy/libraries/fold_convolutions.h"

namespace torch_lazy::lazy {
namespace {

using testing::ElementsAre;
using testing::IsSubsetOf;
using Names = std::vector<std::string>;

// Writes down who runs, and who is let go of.
class NamedWay final : public Runnable {
 public:
  NamedWay(std::string name, std::shared_ptr<Runnable> next, Names* log)
      : name_(std::move(name)), next_(std::move(next)), log_(*log) {}
  bool Run(Trace* trace) override {
    log_.push_back(name_);
    return next_ == nullptr || next_->Run(trace);
  }
  void Release() override { log_.push_back(name_ + " released"); }
  size_t PeakBytes() const override { return 0; }

 private:
  const std::string name_;
  const std::shared_ptr<Runnable> next_;  // null: it runs no other
  Names& log_;
};

struct Behaviour {
  std::string name;
  bool holds = true, is_ready = true, wraps = false;
};

class FakeVariant final : public Variant {
 public:
  FakeVariant(const Behaviour& behaviour, Names* log) : behaviour_(behaviour), log_(*log) {}
  bool Guard(const Trace& /*trace*/) override { return behaviour_.holds; }
  std::shared_ptr<Runnable> Prepare(const std::shared_ptr<Runnable>& next, const Trace& /*trace*/, bool once) override {
    if (!behaviour_.is_ready || once) return nullptr;
    return std::make_shared<NamedWay>(behaviour_.name, behaviour_.wraps ? next : nullptr, &log_);
  }
  void Release() override { log_.push_back(behaviour_.name + " released"); }

 private:
  const Behaviour& behaviour_;
  Names& log_;
};

class VariantsTest : public testing::Test {
 protected:
  VariantsTest() {
    std::vector<std::unique_ptr<Variant>> variants;
    for (const Behaviour* behaviour : {&first_, &second_})
      variants.push_back(std::make_unique<FakeVariant>(*behaviour, &log_));
    variants_ = Variants(std::move(variants));
  }

  // Who runs, from the outside in.
  Names Ways(bool once = false) {
    log_.clear();
    Trace trace;
    variants_.Choose(std::make_shared<NamedWay>("plain", nullptr, &log_), trace, once)->Run(&trace);
    return log_;
  }

  Behaviour first_{"first"}, second_{"second"};
  Names log_;
  Variants variants_;
};

TEST_F(VariantsTest, WithoutAnyThePlainPlanRuns) {
  variants_ = Variants();
  EXPECT_THAT(Ways(), ElementsAre("plain"));
}

TEST_F(VariantsTest, TheLastThatIsReadyRuns) {
  EXPECT_THAT(Ways(), ElementsAre("second"));
  second_.is_ready = false;
  EXPECT_THAT(Ways(), ElementsAre("first"));
  first_.is_ready = false;
  EXPECT_THAT(Ways(), ElementsAre("plain"));
}

TEST_F(VariantsTest, WhatNoLongerHoldsDoesNotRun) {
  second_.holds = false;
  EXPECT_THAT(Ways(), ElementsAre("first"));
  first_.holds = false;
  EXPECT_THAT(Ways(), ElementsAre("plain"));
  second_.holds = true;
  EXPECT_THAT(Ways(), ElementsAre("second"));
}

TEST_F(VariantsTest, OneMayWrapWhatWasFoundSoFar) {
  second_.wraps = true;
  EXPECT_THAT(Ways(), ElementsAre("second", "first"));
  first_.wraps = true;
  EXPECT_THAT(Ways(), ElementsAre("second", "first", "plain"));
  first_.holds = false;
  EXPECT_THAT(Ways(), ElementsAre("second", "plain"));
}

TEST_F(VariantsTest, AreToldWhatIsCutOnce) { EXPECT_THAT(Ways(/*once=*/true), ElementsAre("plain")); }

TEST_F(VariantsTest, AreAllReleased) {
  first_.holds = false;
  variants_.Release();
  EXPECT_THAT(log_, ElementsAre("first released", "second released"));
}

TEST(VariantKinds, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const VariantKind& kind : VariantKinds()) EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
  EXPECT_TRUE(names.contains("freeze"));
}

// Tests of passes ask for the word of each.
TEST(VariantKinds, AreAllThatOptionDisableKnowsBesidePasses) {
  std::set<absl::string_view> known = {"at_once", "autotune", "chunks", "early", "graphs"};
  for (const VariantKind& kind : VariantKinds()) known.insert(kind.name);
  for (const absl::Span<const ir::Pass> passes : {ir::Passes(), codegen::Passes(), ConvolutionPasses()}) {
    for (const ir::Pass& pass : passes) {
      if (!pass.is_needed) known.insert(pass.name);
    }
  }
  const auto option = std::find_if(base::Options().begin(), base::Options().end(),
                                   [](const base::OptionInfo& info) { return info.name == "disable"; });
  const std::vector<absl::string_view> words = absl::StrSplit(option->choices, '|');
  EXPECT_THAT(words, IsSubsetOf(known));
}

}  // namespace
}  // namespace torch_lazy::lazy
