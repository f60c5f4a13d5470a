// SPDX-License-Identifier: Apache-2.0
// Memory that keeps its pages.
//
// A fresh page costs many times what a warm one does, since the kernel must find and clear it.
// Blocks are therefore rounded to size classes, kept after Free and given out again, last one
// first.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "backends/cpu/slab.h"

namespace torch_lazy::backends {

class Pool {
 public:
  Pool() = default;
  ~Pool();  // gives back what is idle

  // 64-byte aligned; null if the system has no more. Free wants the same size again. Both from any
  // thread.
  void* Allocate(size_t size_bytes);
  void Free(void* memory, size_t size_bytes);

  // The program repeats itself: from now on it has huge pages. From any thread.
  void Settle();

  size_t idle_bytes() const;  // kept, and not in use

 private:
  static constexpr int kNumClasses = 256;

  // The free blocks of a size class. There is room for all there are: to give one back takes no
  // memory, which the system may have no more of.
  struct Blocks {
    std::vector<void*> idle;
    std::vector<void*> empty;  // carved ones whose pages the system has back
    size_t number = 0;         // in use, too

    void MakeRoom();  // for one more
  };

  // A block that was mapped before the program settled.
  struct EarlyBlock {
    void* memory;
    size_t bytes;
  };

  void* TakeOrDrop(Blocks* blocks, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void* Take(Blocks* blocks, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void* MapBlock(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UnmapBlock(void* memory, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool DropLargest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  Slabs slabs_ ABSL_GUARDED_BY(mutex_);
  std::array<Blocks, kNumClasses> blocks_ ABSL_GUARDED_BY(mutex_);
  std::vector<EarlyBlock> early_ ABSL_GUARDED_BY(mutex_);
  bool settled_ ABSL_GUARDED_BY(mutex_) = false;
  size_t idle_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t live_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t peak_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace torch_lazy::backends
