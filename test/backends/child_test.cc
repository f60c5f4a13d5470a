// SPDX-License-Identifier: Apache-2.0
#include "backends/compile/child.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "backends/compile/job.h"
#include "backends/cpu/compiler.h"
#include "backends/disk/files.h"
#include "backends/disk/temporary_folder.h"
#include "base/flags.h"
#include "test/backends/kernel.h"

namespace torch_lazy::backends {
namespace {

class Child : public testing::Test {
 protected:
  // What the shell command prints. The shell is the program of the test; children are started
  // without one.
  std::string Output(const std::string& command) {
    const absl::StatusOr<pid_t> child = StartChild({{"sh", "-c", command}, output_});
    EXPECT_TRUE(child.ok()) << child.status();
    EXPECT_TRUE(EndsWithin(*child, absl::Seconds(20)));
    status_ = EndChild(*child);
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

TEST_F(Child, AProgramThatIsNotThereIsAnError) { EXPECT_FALSE(StartChild({{"/no/such/program"}, output_}).ok()); }

TEST_F(Child, HasNoneOfOurFilesAndPreloads) {
  const int file = open("/dev/null", O_RDONLY);  // no O_CLOEXEC
  ASSERT_GT(file, 2);
  ASSERT_EQ(setenv("LAZY_TEST_SECRET", "1", 1), 0);
  EXPECT_EQ(Output(absl::StrCat("test -e /proc/self/fd/", file, " && echo open; echo $LAZY_TEST_SECRET")), "\n");
  unsetenv("LAZY_TEST_SECRET");
  close(file);
}

// Has ended, or has ended and waits to be noticed by its parent.
bool IsGone(const std::string& process) {
  const std::string state = ReadFile(absl::StrCat("/proc/", process, "/stat"));
  return state.empty() || absl::StrContains(state, ") Z ");
}

TEST_F(Child, IsKilledWithItsGroupAtTheLimit) {
  const absl::StatusOr<pid_t> child = StartChild({{"sh", "-c", "sleep 100 & echo $!; wait"}, output_});
  ASSERT_TRUE(child.ok());
  std::string grandchild;
  while (grandchild.empty()) grandchild = ReadFile(output_);
  absl::StripAsciiWhitespace(&grandchild);
  EXPECT_FALSE(EndsWithin(*child, absl::ZeroDuration()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(EndChild(*child)));
  for (int tries = 0; tries < 10000 && !IsGone(grandchild); ++tries) sched_yield();
  EXPECT_TRUE(IsGone(grandchild));
}

TEST_F(Child, MayBeIdle) {
  const absl::StatusOr<pid_t> child = StartChild({{"sleep", "100"}, output_, Priority::kIdle});
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(sched_getscheduler(*child), SCHED_IDLE);
  if (SetPriority(*child, Priority::kLow)) {  // ordinary users may be forbidden to
    EXPECT_EQ(sched_getscheduler(*child), SCHED_OTHER);
    EXPECT_EQ(getpriority(PRIO_PROCESS, *child), 7);
    EXPECT_TRUE(SetPriority(*child, Priority::kNormal));
    EXPECT_EQ(getpriority(PRIO_PROCESS, *child), 0);
  } else {
    EXPECT_NE(geteuid(), 0);
    EXPECT_EQ(sched_getscheduler(*child), SCHED_IDLE);
  }
  EXPECT_FALSE(EndChild(*child).ok());
}

TEST_F(Child, MovesFromProcessorToProcessor) {
  const absl::StatusOr<pid_t> child = StartChild({{"sleep", "100"}, output_});
  ASSERT_TRUE(child.ok());
  const auto processors_of = [](pid_t process) {
    cpu_set_t processors;
    EXPECT_EQ(sched_getaffinity(process, sizeof(processors), &processors), 0);
    return processors;
  };
  const cpu_set_t ours = processors_of(0);
  cpu_set_t seen = {};
  for (int turn = 0; turn < CPU_COUNT(&ours); ++turn) {
    MoveOn(*child, turn);
    const cpu_set_t now = processors_of(*child);
    EXPECT_EQ(CPU_COUNT(&now), 1);
    CPU_OR(&seen, &seen, &now);
  }
  EXPECT_TRUE(CPU_EQUAL(&seen, &ours));
  Release(*child);
  const cpu_set_t released = processors_of(*child);
  EXPECT_TRUE(CPU_EQUAL(&released, &ours));
  EXPECT_FALSE(EndChild(*child).ok());
}

// What compiles a kernel, slowly, and says at which niceness, as an ordinary user.
int CompileSlowly() {
  constexpr uid_t kNobody = 65534;
  if (geteuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) return 1;
  const TemporaryFolder folder = *TemporaryFolder::Make();
  const std::string starts = absl::StrCat(folder.path(), "/starts");
  const std::string script = absl::StrCat(folder.path(), "/compiler");
  // Asked at the end of its sleep: a child that has just started may not have got its niceness yet.
  const std::string text = absl::StrCat("#!/bin/sh\nsleep 1.3\nnice >> ", starts, "\nexec g++ \"$@\"\n");
  if (!WriteFile(script, text).ok() || chmod(script.c_str(), 0700) != 0) return 2;
  if (!base::SetOption("compiler", script).ok()) return 3;
  CompileJob job({CountFrom(1)});
  const absl::StatusOr<Compiler> compiler = FindCompiler();
  if (!compiler.ok()) return 4;
  Order order;
  order.command = compiler->command;
  job.Start(order, /*idle=*/true);
  if (!job.Finish().ok()) return 6;
  return absl::EndsWith(ReadFile(starts), "7\n") ? 0 : 5;
}

TEST_F(Child, ACompilerThatMayNotBeRaisedIsStartedAgain) {
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NICE, &limit), 0);
  if (limit.rlim_cur >= 20) GTEST_SKIP() << "here ordinary users may raise it";
  const pid_t user = fork();
  if (user == 0) _exit(CompileSlowly());
  EXPECT_TRUE(EndsWithin(user, absl::Minutes(1)));
  const absl::Status ended = EndChild(user);
  EXPECT_TRUE(ended.ok()) << ended;
}

TEST_F(Child, ProgramsMayIgnoreTheEndOfChildren) {
  const auto before = signal(SIGCHLD, SIG_IGN);
  Output("exit 0");
  EXPECT_TRUE(status_.ok()) << status_;
  signal(SIGCHLD, before);
}

}  // namespace
}  // namespace torch_lazy::backends
