// SPDX-License-Identifier: Apache-2.0
// The slots of storages that a trace does not know yet, if a call with them is recorded: the next numbers, in the order
// in which the call names them. A storage that it names twice has one.
#pragma once

#include "lazy/trace/storage.h"

namespace torch_lazy::lazy {

// For one call. The device lock is held.
class NewSlots {
 public:
  explicit NewSlots(size_t first) : number_(++last_number_), next_(static_cast<int32_t>(first)) {}

  int32_t Of(LazyStorageImpl* storage) {
    if (storage->seen.by != number_) storage->seen = {number_, next_++};
    return storage->seen.slot;
  }

 private:
  static inline uint64_t last_number_ = 0;
  uint64_t number_;
  int32_t next_;
};

}  // namespace torch_lazy::lazy
