// SPDX-License-Identifier: Apache-2.0
// A program that works on a device and ends in some way, with work pending: exit_program DEVICE SIZE STEPS SYNC WAY.
//
// A step multiplies two matrices of SIZE and updates one of them. SYNC 1 waits for each step's sum. Just before its end
// it prints "ending", the time of the monotonic clock, and the processor time that it has used, both in nanoseconds.
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

namespace {

constexpr int kStatus = 3;

struct Work {
  at::Tensor x, w;
};

// Destroyed after all that the program has registered by then.
Work& Kept() {
  static Work work;
  return work;
}

void Step(bool sync) {
  Work& work = Kept();
  const at::Tensor y = work.x.mm(work.w).mul(0.01).tanh();
  work.w.sub_(y.mul(y).sum({0}, /*keepdim=*/true), 1e-3);
  if (sync) y.sum().item<float>();
}

long long Nanoseconds(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<long long>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

void PrintEnding() {
  std::printf("ending %lld %lld\n", Nanoseconds(CLOCK_MONOTONIC), Nanoseconds(CLOCK_PROCESS_CPUTIME_ID));
  std::fflush(stdout);
}

int StatusOf(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// A child of a fork, which does not use the device, and its parent.
int Fork(bool quickly) {
  const pid_t child = fork();
  if (child == 0 && quickly) _exit(kStatus + 1);
  if (child == 0) exit(kStatus + 1);
  const int status = StatusOf(child);
  Step(/*sync=*/true);
  PrintEnding();
  return status == kStatus + 1 ? kStatus : status;
}

int End(const std::string& way) {
  if (way == "fork") return Fork(/*quickly=*/false);
  if (way == "fork_quickly") return Fork(/*quickly=*/true);
  PrintEnding();
  if (way == "exit") exit(kStatus);
  if (way == "_exit") _exit(kStatus);
  if (way == "quick_exit") quick_exit(kStatus);
  if (way == "throw") throw std::runtime_error("uncaught");
  if (way == "abort") abort();
  if (way == "terminate") raise(SIGTERM);
  if (way == "kill") raise(SIGKILL);
  if (way == "exit_in_thread") std::thread([] { exit(kStatus); }).join();
  if (way == "works_at_exit") {
    atexit([] { Step(/*sync=*/true); });
    exit(kStatus);
  }
  return kStatus;  // "return"
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 64;
  const int64_t size = std::atoll(argv[2]);
  const at::TensorOptions options = at::TensorOptions().device(at::Device(argv[1]));
  Kept() = {at::full({size, size}, 0.5, options), at::full({size, size}, 0.25, options)};
  for (int step = std::atoi(argv[3]); step > 0; --step) Step(std::strcmp(argv[4], "1") == 0);
  return End(argv[5]);
}
