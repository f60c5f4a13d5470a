// SPDX-License-Identifier: Apache-2.0
// Address space: large blocks, and slabs for those that are smaller than a huge page, side by side.
//
// Huge pages save misses of the TLB, so kernels over large tensors run faster. Asked for at the
// first touch they cost more than they bring a short program, since the system may have to make
// room. So they are asked for once the program has settled. The system then moves what is there bit
// by bit, in a thread of its own. To have it done at once (MADV_COLLAPSE) would hold the program up.
#pragma once

#include <cstddef>
#include <vector>

namespace torch_lazy::backends {

constexpr size_t kHugePage = size_t{2} << 20;

// A mapping that starts at a huge page's boundary, and asks for huge pages if it is to have them;
// null if the system has no more. Unmap wants the same size.
void* Map(size_t bytes, bool huge);
void Unmap(void* memory, size_t bytes);

// What is mapped there gets huge pages when the system comes by.
void WantHugePages(void* memory, size_t bytes);

// Not thread-safe. What is carved stays until the slabs go.
class Slabs {
 public:
  Slabs() = default;
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;
  ~Slabs();

  // `bytes`: a multiple of 64, at most a huge page. 64-byte aligned; null if the system has no more.
  void* Carve(size_t bytes);

  // From now on, for slabs that are there and later ones.
  void WantHugePages();

  // Gives the pages that lie wholly in a block back to the system; the block remains usable, its
  // contents are lost. False if there are none.
  static bool DropPages(void* block, size_t bytes);

 private:
  std::vector<char*> slabs_;
  size_t used_bytes_ = 0;  // of the last one
  bool huge_ = false;
};

}  // namespace torch_lazy::backends
