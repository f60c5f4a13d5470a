// SPDX-License-Identifier: Apache-2.0
#include "lazy/host/lock.h"

#include <algorithm>
#include <new>
#include <thread>
#include <utility>

namespace torch_lazy::lazy {
namespace {

constexpr int kLooks = 200;  // before the thread sleeps: about 10 microseconds

}  // namespace

// The calling thread, as locks know it. It may be asked for even when the thread ends, by what ends later: it has no
// place then.
struct LockingThread {
  TraceLock::Place* place = nullptr;
  bool may_take_place = true;

  static LockingThread& Get() {
    static thread_local constinit LockingThread locking_thread;
    return locking_thread;
  }
  void TakePlace();
};

void RelaxProcessor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void RecursiveLock::lock() {
  const void* const self = &LockingThread::Get();
  if (IsHeldBy(self)) {
    ++depth_;
  } else {
    Take(self);
  }
}

void RecursiveLock::Take(const void* self) {
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

void LockingThread::TakePlace() {
  if (!may_take_place) return;
  may_take_place = false;
  place = DeviceLock().TakePlace();
  struct Owner {
    ~Owner() {
      if (TraceLock::Place* const taken = std::exchange(Get().place, nullptr)) DeviceLock().GiveBack(taken);
    }
  };
  static thread_local Owner owner;
  static_cast<void>(owner);
}

void TraceLock::WaitForOthers(const Place* own) {
  for (int k = 0; k < num_places_; ++k) {
    if (&places_[k] == own) continue;
    for (int look = 1; places_[k].is_inside.load(); ++look) {
      RelaxProcessor();
      if (look % kLooks == 0) std::this_thread::yield();  // that thread may wait for this processor
    }
  }
}

// A thread that holds it as own lets go of that meanwhile: another one may be about to do the same.
void TraceLock::lock() {
  LockingThread& self = LockingThread::Get();
  if (alone_.IsHeldBy(&self)) {
    ++alone_.depth_;
    return;
  }
  Place* const own = self.place;
  const bool was_inside = own != nullptr && own->is_inside.load(std::memory_order_relaxed);
  if (was_inside) own->is_inside.store(false);
  alone_.Take(&self);
  if (was_inside) own->is_inside.store(true, std::memory_order_relaxed);
  if (!HaveSeveralThreads()) return;
  is_alone_wanted_.store(true);
  WaitForOthers(own);
}

void TraceLock::unlock() {
  if (alone_.depth_ == 0 && is_alone_wanted_.load(std::memory_order_relaxed))
    is_alone_wanted_.store(false, std::memory_order_release);
  alone_.unlock();
}

TraceLock::Place* TraceLock::LockOwn() {
  LockingThread& self = LockingThread::Get();
  if (alone_.IsHeldBy(&self)) return nullptr;
  if (self.place == nullptr) self.TakePlace();
  Place* const own = self.place;
  if (own == nullptr || !HaveSeveralThreads()) {
    lock();
    return &no_place_;
  }
  if (own->is_inside.load(std::memory_order_relaxed)) return nullptr;
  own->is_inside.store(true);
  if (!is_alone_wanted_.load()) return own;
  own->is_inside.store(false);
  const std::lock_guard<RecursiveLock> nobody_is_alone(alone_);
  own->is_inside.store(true);
  return own;
}

void TraceLock::UnlockOwn(Place* place) {
  place == &no_place_ ? unlock() : place->is_inside.store(false, std::memory_order_release);
}

TraceLock::Place* TraceLock::TakePlace() {
  const Locked alone(*this);
  for (int k = 0; k < kMostPlaces; ++k) {
    if (places_[k].is_used) continue;
    places_[k].is_used = true;
    num_places_ = std::max(num_places_, k + 1);
    if (num_places_ > 1) have_several_threads_ = true;
    return &places_[k];
  }
  return nullptr;
}

void TraceLock::GiveBack(Place* place) {
  const Locked alone(*this);
  place->is_used = false;
}

void TraceLock::ForgetOthers() {
  const Place* const own = LockingThread::Get().place;
  for (Place& place : places_) {
    place.is_inside = false;
    place.is_used = &place == own;
  }
  is_alone_wanted_ = false;
  new (&alone_) RecursiveLock;
}

constinit TraceLock device_lock;

}  // namespace torch_lazy::lazy
