// SPDX-License-Identifier: Apache-2.0
#include "test/fuzz/cpp/child.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace torch_lazy::fuzz {

Child::Child(const std::function<std::string()>& work, unsigned limit_s) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  std::fflush(stdout);
  pid_ = fork();
  if (pid_ < 0) std::abort();
  pipe_ = ends[0];
  if (pid_ > 0) {
    close(ends[1]);
    return;
  }
  close(ends[0]);
  alarm(limit_s);
  const std::string result = work();
  for (size_t sent = 0; sent < result.size();) {
    const ssize_t n = write(ends[1], result.data() + sent, result.size() - sent);
    if (n < 0) break;
    sent += static_cast<size_t>(n);
  }
  _exit(0);
}

std::string Child::Wait() {
  std::string result;
  char buffer[4096];
  for (ssize_t n; (n = read(pipe_, buffer, sizeof buffer)) > 0;) result.append(buffer, static_cast<size_t>(n));
  close(pipe_);
  int status = 0;
  waitpid(pid_, &status, 0);
  if (WIFSIGNALED(status)) {
    if (WTERMSIG(status) == SIGALRM) return "hung";
    return absl::StrCat("crashed: ", strsignal(WTERMSIG(status)));
  }
  return WEXITSTATUS(status) == 0 ? result : absl::StrCat("crashed: exit status ", WEXITSTATUS(status));
}

}  // namespace torch_lazy::fuzz
