// SPDX-License-Identifier: Apache-2.0
#include "base/flags.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace torch_lazy::base {
namespace {

using testing::HasSubstr;

// The environment is read once, so one variable of each kind of outcome is set before anything
// asks.
class Flags : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("LAZY_MAX_TRACE_OPS", "12", 1);
    setenv("LAZY_COMPILE", "sometimes", 1);
    setenv("LAZY_DISABLE", "cse, grphs,dce", 1);
    setenv("LAZY_CACHE_DIR", "cache", 1);
    setenv("LAZY_BAKEND", "cpu", 1);
    setenv("LAZY_QUICKSTEP", "1", 1);
    testing::internal::CaptureStderr();
    Number(Option::kLog);
    said_ = new std::string(testing::internal::GetCapturedStderr());
  }
  static inline std::string* said_ = nullptr;
};

TEST_F(Flags, ComeFromTheEnvironment) {
  EXPECT_EQ(Number(Option::kMaxTraceOps), 12);
  EXPECT_TRUE(IsDisabled("cse"));
  EXPECT_TRUE(IsDisabled("dce"));
  EXPECT_FALSE(IsDisabled("graphs"));
}

TEST_F(Flags, KeepTheDefaultForABadVariable) {
  EXPECT_EQ(Compilation(), CompileMode::kAsync);
  EXPECT_EQ(Text(Option::kCacheDir), "");
  EXPECT_THAT(*said_, HasSubstr("lazy: warning: LAZY_COMPILE=sometimes is ignored, expected async|sync|off\n"));
  EXPECT_THAT(*said_, HasSubstr("lazy: warning: LAZY_CACHE_DIR=cache is ignored, expected an absolute path\n"));
}

TEST_F(Flags, WarnOfAnUnknownVariableWithTheNearestName) {
  EXPECT_THAT(*said_, HasSubstr("lazy: warning: there is no variable LAZY_BAKEND, did you mean 'BACKEND'?\n"));
  EXPECT_THAT(*said_, HasSubstr("lazy: warning: there is no variable LAZY_QUICKSTEP\n"));
}

TEST_F(Flags, WarnOfAnUnknownWordWithTheNearestOne) {
  EXPECT_THAT(*said_, HasSubstr("lazy: warning: LAZY_DISABLE: there is no 'grphs', did you mean 'graphs'?\n"));
  EXPECT_EQ(SetOption("disable", "freeze,autotun").message(),
            "set_option: disable: there is no 'autotun', did you mean 'autotune'?");
  EXPECT_TRUE(SetOption("disable", "freeze, autotune").ok());
  EXPECT_TRUE(IsDisabled("autotune"));
}

TEST_F(Flags, SayNothingElse) { EXPECT_EQ(std::count(said_->begin(), said_->end(), '\n'), 5); }

TEST_F(Flags, KeepTheDefaultWithoutAVariable) { EXPECT_EQ(Number(Option::kLog), 0); }

TEST_F(Flags, CanBeSetByName) {
  EXPECT_TRUE(SetOption("overlap", "0").ok());
  EXPECT_EQ(Number(Option::kOverlap), 0);
  EXPECT_TRUE(SetOption("verify", "1").ok());
  EXPECT_EQ(Number(Option::kVerify), 1);
  EXPECT_TRUE(SetOption("dump", "/tmp/x").ok());
  EXPECT_EQ(Text(Option::kDump), "/tmp/x");
  EXPECT_NE(Number(Option::kDump), 0);
}

TEST_F(Flags, SuggestANameForAnUnknownOne) {
  EXPECT_EQ(SetOption("max_trace_op", "1").message(),
            "set_option: there is no option 'max_trace_op', did you mean 'max_trace_ops'?");
}

TEST_F(Flags, RefuseAValueAndKeepTheOldOne) {
  ASSERT_TRUE(SetOption("backend", "cpu").ok());
  EXPECT_EQ(SetOption("backend", "tpu").message(),
            "set_option: backend cannot be 'tpu', expected auto|cpu|cuda|null|null_cuda|stand_in");
  EXPECT_EQ(Backend(), BackendChoice::kCpu);
  EXPECT_FALSE(SetOption("max_trace_ops", "-1").ok());
  EXPECT_FALSE(SetOption("verify", "maybe").ok());
  EXPECT_FALSE(SetOption("cache_dir", "not/absolute").ok());
}

TEST_F(Flags, StayAsTheyAreOnceFixed) {
  ASSERT_TRUE(SetOption("compiler", "g++").ok());
  EXPECT_EQ(FixedText(Option::kCompiler), "g++");
  EXPECT_TRUE(SetOption("compiler", "g++").ok());
  EXPECT_EQ(SetOption("compiler", "/bin/sh").message(),
            "set_option: compiler is 'g++' and in use, so it cannot change any more: set it, or "
            "LAZY_COMPILER, before the device is used");
  EXPECT_EQ(Text(Option::kCompiler), "g++");
  internal::FixedOptions() = 0;
}

TEST_F(Flags, HaveADocumentedDefaultThatIsValid) {
  for (const OptionInfo& info : Options()) {
    EXPECT_FALSE(info.doc.empty()) << info.name;
    EXPECT_TRUE(SetOption(info.name, info.default_text).ok()) << info.name;
  }
}

// What the test below runs as another user.
TEST(SetUserId, DISABLED_Says) { printf("[%s] [%s]\n", Text(Option::kCacheDir).c_str(), Environment("HOME").c_str()); }

// A program that runs with its owner's rights does not do what its user's variables say.
TEST(SetUserId, ReadsNoVariable) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make programs of other users";
  const std::filesystem::path folder = testing::TempDir() + "/lazy_set_user_id";
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(std::filesystem::create_directories(folder));
  const std::string program = folder / "program";
  std::filesystem::copy_file("/proc/self/exe", program);
  const std::string command =
      absl::StrCat("cd / && LAZY_CACHE_DIR=/chosen HOME=/home/chosen setpriv --reuid 65534 --clear-groups ", program,
                   " --gtest_also_run_disabled_tests --gtest_filter=SetUserId.DISABLED_Says");
  const auto said = [&] {
    FILE* const pipe = popen(command.c_str(), "r");
    std::string text(4096, '\0');
    text.resize(fread(text.data(), 1, text.size(), pipe));
    pclose(pipe);
    return text;
  };
  ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
  ASSERT_EQ(chmod(program.c_str(), 0755), 0);
  EXPECT_THAT(said(), HasSubstr("[/chosen] [/home/chosen]"));
  ASSERT_EQ(chmod(program.c_str(), 04755), 0);
  EXPECT_THAT(said(), HasSubstr("[] []"));
}

}  // namespace
}  // namespace torch_lazy::base
