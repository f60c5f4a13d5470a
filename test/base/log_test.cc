// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "gtest/gtest.h"

namespace torch_lazy::base {
namespace {

std::string Contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Log, BuildsNoMessageBelowItsLevel) {
  int built = 0;
  auto message = [&] { return ++built; };
  ASSERT_TRUE(SetOption("log", "1").ok());
  testing::internal::CaptureStderr();
  LAZY_LOG(2, "quiet ", message());
  LAZY_LOG(1, "sync: ", message());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "lazy: sync: 1\n");
  EXPECT_EQ(built, 1);
}

TEST(Log, WarnsOnceForAKey) {
  testing::internal::CaptureStderr();
  WarnOnce("a", "first");
  WarnOnce("a", "again");
  WarnOnce("b", "other");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "lazy: warning: first\nlazy: warning: other\n");
}

// The option is fixed once something was dumped.
void SetDump(const std::string& folder) {
  internal::FixedOptions() = 0;
  ASSERT_TRUE(SetOption("dump", folder).ok());
}

TEST(Log, DumpsNothingWithoutAFolder) {
  SetDump("");
  EXPECT_EQ(MakeDumpFolder("sync"), "");
  WriteDump("", "trace.lir", "text");
  EXPECT_FALSE(std::filesystem::exists("/trace.lir"));
}

TEST(Log, NumbersDumpFolders) {
  const std::string root = testing::TempDir() + "/lazy_log_test";
  std::filesystem::remove_all(root);
  SetDump(root);
  const std::string first = MakeDumpFolder("sync");
  const std::string second = MakeDumpFolder("sync");
  EXPECT_LT(first, second);
  WriteDump(second, "00-trace.lir", "graph");
  EXPECT_EQ(Contents(second + "/00-trace.lir"), "graph");
}

TEST(Log, GoesOnWhenTheDumpFolderCannotBeMade) {
  SetDump("/dev/null/here");
  EXPECT_EQ(MakeDumpFolder("sync"), "");
}

}  // namespace
}  // namespace torch_lazy::base
