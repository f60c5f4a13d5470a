// SPDX-License-Identifier: Apache-2.0
// The one lock around traces and storages.
//
// Held for the length of one recording step, never while an entry runs or a compiler is waited for. Recursive, since
// dropping the last reference to a storage inside a locked region ends in that storage's destructor.
#pragma once

#include <atomic>
#include <mutex>

namespace torch_lazy::lazy {

// A recursive mutex for short scopes. Threads that record at once want it every 100 nanoseconds. Who finds it held
// therefore looks again for some microseconds before the thread sleeps: to sleep and to be woken takes longer.
class RecursiveLock {
 public:
  void lock();
  void unlock();

 private:
  enum State : int { kFree, kHeld, kHeldWithSleepers };
  std::atomic<int> state_{kFree};
  std::atomic<const void*> owner_{nullptr};  // something of the thread that holds it
  int depth_ = 0;                            // locks of the owner beyond its first
};

RecursiveLock& DeviceLock();
using Locked = std::lock_guard<RecursiveLock>;

}  // namespace torch_lazy::lazy
