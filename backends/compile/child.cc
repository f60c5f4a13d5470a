// SPDX-License-Identifier: Apache-2.0
#include "backends/compile/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/flags.h"

namespace torch_lazy::backends {
namespace {

// What a compiler needs of our environment. LD_PRELOAD and the like stay behind.
std::vector<std::string> KeptEnvironment() {
  std::vector<std::string> environment = {"LC_ALL=C"};
  for (const absl::string_view name : {"PATH", "HOME", "LD_LIBRARY_PATH"}) {
    if (const std::string value = base::Environment(name.data()); !value.empty())
      environment.push_back(absl::StrCat(name, "=", value));
  }
  return environment;
}

// Read once: a program may set variables while a thread of ours reads them.
std::vector<std::string> ChildEnvironment(const std::string& temporary_folder) {
  static const auto& kept = *new std::vector<std::string>(KeptEnvironment());
  std::vector<std::string> environment = kept;
  const std::string temporary = temporary_folder.empty() ? base::Environment("TMPDIR") : temporary_folder;
  if (!temporary.empty()) environment.push_back(absl::StrCat("TMPDIR=", temporary));
  return environment;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// The attributes and file actions of posix_spawn, destroyed together.
class SpawnSettings {
 public:
  explicit SpawnSettings(const ChildOptions& options) {
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&actions);
    const short flags =
        (options.own_group ? POSIX_SPAWN_SETPGROUP : 0) | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    posix_spawnattr_setflags(&attributes, flags);
    [[maybe_unused]] const int files = options.files.empty() ? OpenOutput(options.output_file) : Pass(options.files);
#if __GLIBC_PREREQ(2, 34)
    posix_spawn_file_actions_addclosefrom_np(&actions, files);
#endif
  }
  ~SpawnSettings() {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    for (const int file : copies_) close(file);
  }
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
  int error = 0;  // the child would have other files than it should

 private:
  // These return how many files the child has, or may have.
  int OpenOutput(const std::string& file) {
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    return 3;
  }
  int Pass(const std::vector<int>& files) {
    constexpr int kAbove = 16;  // so that none is overwritten before it has been passed
    int number = 0;
    for (const int file : files) {
      if (number == 2) ++number;
      const int copy = fcntl(file, F_DUPFD_CLOEXEC, kAbove);
      if (copy < 0) error = errno;
      posix_spawn_file_actions_adddup2(&actions, copy, number++);
      if (copy >= 0) copies_.push_back(copy);
    }
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    return std::max(number, 3);
  }

  std::vector<int> copies_;
};

std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  std::ifstream file(absl::StrCat("/proc/", parent, "/task/", parent, "/children"));
  for (pid_t child; file >> child;) children.push_back(child);
  return children;
}

// To those of the processors [first, end) that we may use ourselves.
void Confine(pid_t child, int first, int end) {
  cpu_set_t processors;
  if (sched_getaffinity(0, sizeof(processors), &processors) != 0) return;
  for (int k = 0; k < CPU_SETSIZE; ++k) {
    if (k < first || k >= end) CPU_CLR(k, &processors);
  }
  sched_setaffinity(child, sizeof(processors), &processors);
  for (const pid_t grandchild : ChildrenOf(child)) Confine(grandchild, first, end);
}

}  // namespace

bool EndsWithin(pid_t child, absl::Duration limit) {
  const absl::Time deadline = absl::Now() + limit;
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  if (handle < 0) {  // an old kernel: ask from time to time
    siginfo_t info = {};
    while (waitid(P_PID, child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0) {
      if (absl::Now() >= deadline) return false;
      absl::SleepFor(absl::Milliseconds(2));
    }
    return true;
  }
  int ready = 0;
  do {
    const absl::Duration left = std::max(deadline - absl::Now(), absl::ZeroDuration());
    pollfd request = {handle, POLLIN, 0};
    ready = poll(&request, 1, static_cast<int>(absl::ToInt64Milliseconds(left)));
  } while (ready < 0 && errno == EINTR);
  close(handle);
  return ready > 0;
}

absl::StatusOr<pid_t> StartChild(const ChildOptions& options) {
  const std::vector<std::string> environment = ChildEnvironment(options.temporary_folder);
  const std::vector<char*> arguments = Pointers(options.arguments);
  const std::vector<char*> variables = Pointers(environment);
  const SpawnSettings settings(options);
  if (settings.error != 0)
    return absl::UnavailableError(absl::StrCat(options.arguments[0], ": ", strerror(settings.error)));
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, arguments[0], &settings.actions, &settings.attributes, arguments.data(), variables.data());
  // glibc's spawn attributes refuse SCHED_IDLE. The child inherits it to what it starts later.
  if (error == 0 && options.priority != Priority::kNormal) SetPriority(child, options.priority);
  if (error == 0) return child;
  return absl::UnavailableError(absl::StrCat(options.arguments[0], ": ", strerror(error)));
}

absl::Status EndChild(pid_t child, bool own_group) {
  const bool ended = EndsWithin(child, absl::ZeroDuration());
  // What it has started ends with it; the group's number is taken until the child is waited for.
  if (own_group || !ended) kill(own_group ? -child : child, SIGKILL);
  int state = 0;
  pid_t waited = 0;
  do {
    waited = waitpid(child, &state, 0);
  } while (waited < 0 && errno == EINTR);
  if (!ended) return absl::DeadlineExceededError("killed, since it took too long");
  if (waited < 0) return absl::OkStatus();  // a program that ignores SIGCHLD: its result will tell
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return absl::OkStatus();
  if (WIFSIGNALED(state)) return absl::InternalError(absl::StrCat("ended by signal ", WTERMSIG(state)));
  return absl::InternalError(absl::StrCat("exit status ", WEXITSTATUS(state)));
}

absl::Status AskChildToEnd(pid_t child, bool own_group) {
  kill(own_group ? -child : 0, SIGTERM);
  EndsWithin(child, absl::Seconds(1));
  return EndChild(child, own_group);
}

void LimitResources() {
  constexpr rlim_t kGigabyte = rlim_t{1} << 30;
  const std::pair<int, rlim_t> limits[] = {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // these reserve terabytes
    {RLIMIT_AS, 4 * kGigabyte},
#endif
    {RLIMIT_CPU, 300},  // seconds
    {RLIMIT_FSIZE, kGigabyte},
    {RLIMIT_CORE, 0}
  };
  for (const auto& [resource, most] : limits) {
    rlimit limit = {};
    if (getrlimit(resource, &limit) != 0) continue;
    limit.rlim_cur = std::min(limit.rlim_cur, most);  // RLIM_INFINITY is the largest number
    limit.rlim_max = std::min(limit.rlim_max, most);
    setrlimit(resource, &limit);
  }
}

bool SetPriority(pid_t child, Priority priority) {
  constexpr int kIdleNice = 19, kLowNice = 7;  // of an idle one for statistics alone: base/spare_processors
  const int nice = priority == Priority::kIdle ? kIdleNice : priority == Priority::kLow ? kLowNice : 0;
  const int policy = priority == Priority::kIdle ? SCHED_IDLE : SCHED_OTHER;
  const sched_param parameter = {};
  const bool done = setpriority(PRIO_PROCESS, child, nice) == 0 && sched_setscheduler(child, policy, &parameter) == 0;
  bool allowed = done || errno == ESRCH;  // it may have ended
  for (const pid_t grandchild : ChildrenOf(child)) {
    allowed = SetPriority(grandchild, priority) && allowed;
  }
  return allowed;
}

void MoveOn(pid_t child, int turn) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  int skipped = turn % CPU_COUNT(&allowed);
  int processor = 0;
  while (!CPU_ISSET(processor, &allowed) || skipped-- > 0) ++processor;
  Confine(child, processor, processor + 1);
}

void Release(pid_t child) { Confine(child, 0, CPU_SETSIZE); }

}  // namespace torch_lazy::backends
