// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/at_work.h"

#include <stdlib.h>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace torch_lazy::backends::cuda {
namespace {

struct Work {
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
  absl::MutexLock lock(&work.mutex);
  if (!work.exiting) ++work.running;
  return !work.exiting;
}

void AwaitWork() {
  Work& work = TheWork();
  absl::MutexLock lock(&work.mutex);
  work.exiting = true;
  work.mutex.Await(absl::Condition(
      +[](int* running) { return *running == 0; }, &work.running));
}

}  // namespace

AtWork::AtWork() : may_begin_(Begin()) {}

AtWork::~AtWork() {
  Work& work = TheWork();
  absl::MutexLock lock(&work.mutex);
  if (may_begin_) --work.running;
}

void WaitForWorkAtExit() { atexit(AwaitWork); }

}  // namespace torch_lazy::backends::cuda
