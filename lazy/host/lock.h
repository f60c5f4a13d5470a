// SPDX-License-Identifier: Apache-2.0
// The lock around traces and storages.
//
// Note [Device lock]
// Held for the length of one recording step, never while an entry runs or a compiler is waited for. It is held in one
// of two ways:
// - *alone*, by one thread: for all that another thread's trace may see;
// - as *own*, by any number of threads: for calls that a thread records on its trace while that trace alone changes. A
//   known call that only reads is one, and the end of a storage that no other trace has touched is another. Eight
//   threads that share a model do little else.
// Who holds it as own says so in a place of the thread's own, which costs no other thread anything. Who wants it alone
// looks at all these places. What threads change beside each other of one storage, its touches, has a guard of its own.
// Until a second thread records, whoever asks for it as own has it alone.
//
// Recursive, since dropping the last reference to a storage inside a locked region ends in that storage's destructor.
#pragma once

#include <atomic>
#include <mutex>
#include <utility>

namespace torch_lazy::lazy {

void RelaxProcessor();  // between two looks at what another thread will change soon

// A recursive mutex for short scopes. Threads that record at once want it every 100 nanoseconds. Who finds it held
// therefore looks again for some microseconds before the thread sleeps: to sleep and to be woken takes longer.
class RecursiveLock {
 public:
  void lock();
  void unlock();

 private:
  friend class TraceLock;
  // `self`: something of the calling thread.
  bool IsHeldBy(const void* self) const { return owner_.load(std::memory_order_relaxed) == self; }
  void Take(const void* self);  // which does not hold it

  enum State : int { kFree, kHeld, kHeldWithSleepers };
  std::atomic<int> state_{kFree};
  std::atomic<const void*> owner_{nullptr};
  int depth_ = 0;  // locks of the owner beyond its first
};

class TraceLock {
 public:
  // Where a thread says that it holds the lock as own.
  struct alignas(64) Place {
    std::atomic<bool> is_inside{false};
    bool is_used = false;  // by a thread that lives; guarded by the lock
  };

  // Alone.
  void lock();
  void unlock();

  // As own, or alone, until UnlockOwn() of what it returns. Null: the thread holds the lock in some way already.
  Place* LockOwn();
  void UnlockOwn(Place* place);

  // Several threads have asked for it as own, ever. Does not become true while somebody holds it.
  static bool HaveSeveralThreads() { return have_several_threads_.load(std::memory_order_relaxed); }

  // In a child, after a fork of the calling thread, which holds the lock alone: it is free, and no other thread lives.
  void ForgetOthers();

 private:
  static constexpr int kMostPlaces = 128;
  friend struct LockingThread;
  void WaitForOthers(const Place* own);
  Place* TakePlace();  // null: there is none left
  void GiveBack(Place* place);

  static inline std::atomic<bool> have_several_threads_{false};
  RecursiveLock alone_;
  std::atomic<bool> is_alone_wanted_{false};
  int num_places_ = 0;  // that were ever used: those before this number
  Place places_[kMostPlaces];
  Place no_place_;  // of who holds the lock alone, though as own would do
};

// It needs no destructor, so it is there until the process ends.
extern constinit TraceLock device_lock;
inline TraceLock& DeviceLock() { return device_lock; }
using Locked = std::lock_guard<TraceLock>;

// Holds the device lock, alone or as own.
class RecordingLock {
 public:
  explicit RecordingLock(bool alone) : is_alone_(alone) { lock(); }
  ~RecordingLock() { unlock(); }
  RecordingLock(const RecordingLock&) = delete;
  RecordingLock& operator=(const RecordingLock&) = delete;

  void lock() {
    if (is_alone_) {
      DeviceLock().lock();
      is_held_alone_ = true;
    } else {
      own_ = DeviceLock().LockOwn();
    }
  }
  // Nothing, where it is not held.
  void unlock() {
    if (std::exchange(is_held_alone_, false)) DeviceLock().unlock();
    if (TraceLock::Place* const own = std::exchange(own_, nullptr)) DeviceLock().UnlockOwn(own);
  }

 private:
  const bool is_alone_;
  bool is_held_alone_ = false;
  TraceLock::Place* own_ = nullptr;
};

}  // namespace torch_lazy::lazy
