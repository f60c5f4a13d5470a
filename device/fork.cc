// SPDX-License-Identifier: Apache-2.0
#include "device/fork.h"

#include <mutex>

#include <pthread.h>

#include <c10/util/Exception.h>

#include "lazy/host/fork.h"

namespace torch_lazy::device {

std::atomic<ForkState> fork_state{ForkState::kUnused};

void FirstUseOrThrow() {
  TORCH_CHECK(fork_state != ForkState::kForkedAfterUse,
              "cannot use device lazy in a forked subprocess of a process that has used it; to use it with "
              "multiprocessing, use the 'spawn' start method");
  // What the parent never used works in the child like anywhere.
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(&lazy::BeforeFork, &lazy::AfterForkInParent, [] {
      lazy::AfterForkInChild();
      fork_state.store(ForkState::kForkedAfterUse, std::memory_order_relaxed);
    });
  });
  fork_state = ForkState::kUsed;
}

}  // namespace torch_lazy::device
