// SPDX-License-Identifier: Apache-2.0
// A launch's instances as launches of kernels, and the memory these read.
//
// Instances of one kernel are one launch, but for those that take its entry for one length, up to
// so many at a time. One instance goes by value, as do those and a few; many by a table. Where the kernel lacks that
// entry, it has another, which takes them all, or one by one. What the device reads (scalars, tables, where each
// instance's blocks begin) is one image, so that it takes one copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "backends/backend.h"
#include "backends/blocks/block_kernel.h"

namespace torch_lazy::backends {

struct BlockLaunch {
  const BlockKernel* kernel = nullptr;
  using Entry = codegen::Kernel::Entry;
  Entry entry = Entry::kOne;  // of the kernel
  int64_t blocks = 0;         // of all instances; of the largest where these are in the grid's y
  absl::InlinedVector<const BoundInstance*, 4> instances;
  size_t arguments_at = 0;    // bytes from the image's start: struct Arguments of each instance
  size_t first_block_at = 0;  // of several instances: where their blocks begin
  bool is_exact() const { return entry == Entry::kExact; }
  bool is_many() const { return entry == Entry::kMany; }
  int64_t grid_y() const { return is_many() ? 1 : static_cast<int64_t>(instances.size()); }
};

// That entry, as the backend knows it.
inline void* EntryOf(const BlockLaunch& launch) {
  switch (launch.entry) {
    case BlockLaunch::Entry::kOne:
      return launch.kernel->one;
    case BlockLaunch::Entry::kFew:
      return launch.kernel->few;
    case BlockLaunch::Entry::kMany:
      return launch.kernel->many;
    case BlockLaunch::Entry::kExact:
      return launch.kernel->exact;
  }
  return nullptr;
}

class BlockLaunches {
 public:
  // In the order of their first instances; those without iterations are left out.
  explicit BlockLaunches(absl::Span<const BoundInstance> instances);

  absl::Span<const BlockLaunch> launches() const { return launches_; }
  // True if the device reads tables, and not only scalars.
  bool has_tables() const;
  // The image begins with what the device reads; arguments that go by value follow.
  size_t size_bytes() const { return size_bytes_; }
  size_t device_bytes() const { return device_bytes_; }
  // `image`: memory of the host, 8-byte aligned. `address`: where the device will see it.
  void Write(char* image, uint64_t address) const;
  // Where in the image the scalars begin of each of the instances that it was made of.
  std::vector<size_t> ScalarPlaces(absl::Span<const BoundInstance> instances) const;

 private:
  BlockLaunch& LaunchOf(const BlockKernel* kernel, int64_t blocks, bool is_exact);
  void ChooseEntries();
  void Split(size_t number);
  void PlaceParts();

  absl::InlinedVector<BlockLaunch, 4> launches_;
  size_t size_bytes_ = 0;
  size_t device_bytes_ = 0;
};

}  // namespace torch_lazy::backends
