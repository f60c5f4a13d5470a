// SPDX-License-Identifier: Apache-2.0
#include "base/flags.h"

#include <cstdlib>

#include "gtest/gtest.h"

namespace torch_lazy::base {
namespace {

// The environment is read once, so one variable of each kind of outcome is set before anything
// asks.
class Flags : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("LAZY_MAX_TRACE_OPS", "12", 1);
    setenv("LAZY_COMPILE", "sometimes", 1);
    setenv("LAZY_DISABLE", "cse,dce", 1);
  }
};

TEST_F(Flags, ComeFromTheEnvironment) {
  EXPECT_EQ(Number(Option::kMaxTraceOps), 12);
  EXPECT_EQ(Text(Option::kDisable), "cse,dce");
}

TEST_F(Flags, KeepTheDefaultForABadVariable) { EXPECT_EQ(Compilation(), CompileMode::kAsync); }

TEST_F(Flags, KeepTheDefaultWithoutAVariable) {
  EXPECT_EQ(NumericsMode(), Numerics::kEager);
  EXPECT_EQ(Number(Option::kLog), 0);
}

TEST_F(Flags, CanBeSetByName) {
  EXPECT_TRUE(SetOption("numerics", "fast").ok());
  EXPECT_EQ(NumericsMode(), Numerics::kFast);
  EXPECT_TRUE(SetOption("verify", "1").ok());
  EXPECT_EQ(Number(Option::kVerify), 1);
  EXPECT_TRUE(SetOption("dump", "/tmp/x").ok());
  EXPECT_EQ(Text(Option::kDump), "/tmp/x");
  EXPECT_NE(Number(Option::kDump), 0);
}

TEST_F(Flags, SuggestANameForAnUnknownOne) {
  EXPECT_EQ(SetOption("max_trace_op", "1").message(),
            "set_option: there is no option 'max_trace_op', did you mean 'max_trace_ops'");
}

TEST_F(Flags, RefuseAValueAndKeepTheOldOne) {
  ASSERT_TRUE(SetOption("backend", "cpu").ok());
  EXPECT_EQ(SetOption("backend", "tpu").message(),
            "set_option: backend cannot be 'tpu', expected auto|cpu|cuda|null|null_cuda|stand_in");
  EXPECT_EQ(Backend(), BackendChoice::kCpu);
  EXPECT_FALSE(SetOption("max_trace_ops", "-1").ok());
  EXPECT_FALSE(SetOption("verify", "maybe").ok());
}

TEST_F(Flags, HaveADocumentedDefaultThatIsValid) {
  for (const OptionInfo& info : Options()) {
    EXPECT_FALSE(info.doc.empty()) << info.name;
    EXPECT_TRUE(SetOption(info.name, info.default_text).ok()) << info.name;
  }
}

}  // namespace
}  // namespace torch_lazy::base
