// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/at_work.h"

#include <stdlib.h>
#include <unistd.h>

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace torch_lazy::backends::cuda {
namespace {

struct Work {
  std::atomic<pid_t> process{0};  // whose threads these are: a fork has none of them
  std::atomic<bool> registered{false};
  absl::Mutex mutex;
  bool exiting ABSL_GUARDED_BY(mutex) = false;
  int running ABSL_GUARDED_BY(mutex) = 0;
};

Work& TheWork() {
  static Work& work = *new Work;
  return work;
}

bool Begin() {
  Work& work = TheWork();
  work.process = getpid();
  absl::MutexLock lock(&work.mutex);
  if (!work.exiting) ++work.running;
  return !work.exiting;
}

void AwaitWork() {
  Work& work = TheWork();
  if (work.process != getpid()) return;
  absl::MutexLock lock(&work.mutex);
  work.exiting = true;
  work.mutex.Await(absl::Condition(
      +[](int* running) { return *running == 0; }, &work.running));
}

struct EndOfThread {
  ~EndOfThread() { AwaitWork(); }
};

}  // namespace

AtWork::AtWork() : may_begin_(Begin()) {}

AtWork::~AtWork() {
  if (!may_begin_) return;
  absl::MutexLock lock(&TheWork().mutex);
  --TheWork().running;
}

void WaitForWorkAtExit() {
  if (gettid() == getpid()) {
    static thread_local EndOfThread end;
    static_cast<void>(&end);
  } else if (!TheWork().registered.exchange(true)) {
    atexit(AwaitWork);
  }
}

}  // namespace torch_lazy::backends::cuda
