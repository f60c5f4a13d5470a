// SPDX-License-Identifier: Apache-2.0
// The slots of storages that a trace does not know yet, if a call with them is recorded: the next numbers, in the order
// in which the call names them. A storage that it names twice has one.
#pragma once

#include <atomic>
#include <cstdint>

#include "lazy/trace/storage.h"

namespace torch_lazy::lazy {

// For one call. The device lock is held; as own, with a guard of the storage.
class NewSlots {
 public:
  explicit NewSlots(size_t first) : next_(static_cast<int32_t>(first)) {}

  int32_t Of(LazyStorageImpl* storage) {
    if (number_ == 0) number_ = NextNumber();
    if (storage->seen.by != number_) storage->seen = {number_, next_++};
    return storage->seen.slot;
  }

 private:
  // No two threads have one.
  static uint64_t NextNumber() {
    constexpr int kMostOfThread = 40;  // bits
    static std::atomic<uint64_t> num_threads{0};
    thread_local uint64_t last = ++num_threads << kMostOfThread;
    return ++last;
  }
  uint64_t number_ = 0;  // 0: not asked for
  int32_t next_;
};

}  // namespace torch_lazy::lazy
