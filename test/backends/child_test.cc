// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/child.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "backends/cpu/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace torch_lazy::backends {
namespace {

class Child : public testing::Test {
 protected:
  // What the shell command prints. The shell is the program of the test; children are started
  // without one.
  std::string Output(const std::string& command) {
    const absl::StatusOr<pid_t> child = StartChild({{"sh", "-c", command}, output_, false});
    EXPECT_TRUE(child.ok()) << child.status();
    status_ = WaitForChild(*child, absl::Seconds(20));
    return ReadFile(output_);
  }
  absl::Status status_;
  TemporaryFolder folder_ = *TemporaryFolder::Make();
  const std::string output_ = absl::StrCat(folder_.path(), "/output");
};

TEST_F(Child, ItsStatusIsKnown) {
  EXPECT_EQ(Output("echo out; echo error >&2"), "out\nerror\n");
  EXPECT_TRUE(status_.ok());
  Output("exit 3");
  EXPECT_EQ(status_.message(), "exit status 3");
  Output("kill -9 $$");
  EXPECT_EQ(status_.message(), "ended by signal 9");
}

TEST_F(Child, AProgramThatIsNotThereIsAnError) {
  EXPECT_FALSE(StartChild({{"/no/such/program"}, output_, false}).ok());
}

TEST_F(Child, HasNoneOfOurFilesAndPreloads) {
  const int file = open("/dev/null", O_RDONLY);  // no O_CLOEXEC
  ASSERT_GT(file, 2);
  ASSERT_EQ(setenv("LAZY_TEST_SECRET", "1", 1), 0);
  EXPECT_EQ(
      Output(absl::StrCat("test -e /proc/self/fd/", file, " && echo open; echo $LAZY_TEST_SECRET")),
      "\n");
  unsetenv("LAZY_TEST_SECRET");
  close(file);
}

// Has ended, or has ended and waits to be noticed by its parent.
bool IsGone(const std::string& process) {
  const std::string state = ReadFile(absl::StrCat("/proc/", process, "/stat"));
  return state.empty() || absl::StrContains(state, ") Z ");
}

TEST_F(Child, IsKilledWithItsGroupAtTheLimit) {
  const absl::StatusOr<pid_t> child =
      StartChild({{"sh", "-c", "sleep 100 & echo $!; wait"}, output_, false});
  ASSERT_TRUE(child.ok());
  std::string grandchild;
  while (grandchild.empty()) grandchild = ReadFile(output_);
  absl::StripAsciiWhitespace(&grandchild);
  EXPECT_TRUE(absl::IsDeadlineExceeded(WaitForChild(*child, absl::ZeroDuration())));
  for (int tries = 0; tries < 10000 && !IsGone(grandchild); ++tries) sched_yield();
  EXPECT_TRUE(IsGone(grandchild));
}

TEST_F(Child, MayBeIdle) {
  const absl::StatusOr<pid_t> child = StartChild({{"sleep", "100"}, output_, true});
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(sched_getscheduler(*child), SCHED_IDLE);
  RaiseChild(*child);
  if (geteuid() == 0) {
    EXPECT_EQ(sched_getscheduler(*child), SCHED_OTHER);  // others may be forbidden to
  }
  EXPECT_FALSE(WaitForChild(*child, absl::ZeroDuration()).ok());
}

TEST_F(Child, ProgramsMayIgnoreTheEndOfChildren) {
  const auto before = signal(SIGCHLD, SIG_IGN);
  Output("exit 0");
  EXPECT_TRUE(status_.ok()) << status_;
  signal(SIGCHLD, before);
}

}  // namespace
}  // namespace torch_lazy::backends
