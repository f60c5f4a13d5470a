// SPDX-License-Identifier: Apache-2.0
#include "lazy/host/lock.h"

namespace torch_lazy::lazy {
namespace {

constexpr int kLooks = 200;  // before the thread sleeps: about 10 microseconds

void RelaxProcessor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

const void* ThisThread() {
  thread_local const char here = 0;
  return &here;
}

}  // namespace

void RecursiveLock::lock() {
  const void* const self = ThisThread();
  if (owner_.load(std::memory_order_relaxed) == self) {
    ++depth_;
    return;
  }
  int free = kFree;
  bool is_ours = state_.compare_exchange_strong(free, kHeld, std::memory_order_acquire);
  for (int look = 0; !is_ours && look < kLooks; ++look) {
    RelaxProcessor();
    free = kFree;
    is_ours = state_.load(std::memory_order_relaxed) == kFree &&
              state_.compare_exchange_weak(free, kHeld, std::memory_order_acquire);
  }
  while (!is_ours) {
    is_ours = state_.exchange(kHeldWithSleepers, std::memory_order_acquire) == kFree;
    if (!is_ours) state_.wait(kHeldWithSleepers, std::memory_order_relaxed);
  }
  owner_.store(self, std::memory_order_relaxed);
}

void RecursiveLock::unlock() {
  if (depth_ != 0) {
    --depth_;
    return;
  }
  owner_.store(nullptr, std::memory_order_relaxed);
  if (state_.exchange(kFree, std::memory_order_release) == kHeldWithSleepers) state_.notify_one();
}

RecursiveLock& DeviceLock() {
  static auto* const lock = new RecursiveLock;
  return *lock;
}

}  // namespace torch_lazy::lazy
