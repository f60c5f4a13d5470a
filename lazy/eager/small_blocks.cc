// SPDX-License-Identifier: Apache-2.0
#include "lazy/eager/small_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <iterator>
#include <utility>

#include <c10/core/impl/alloc_cpu.h>

#include "base/of_thread.h"

namespace torch_lazy::lazy {
namespace {

constexpr size_t kSmallest = 64;
constexpr size_t kNumSizes = std::bit_width(kMostSmallBytes / kSmallest);  // each twice the one before

// Of one size, those that the thread has freed last.
struct Kept {
  uint32_t number = 0;
  void* blocks[16];
};

struct SmallBlocks {
  SmallBlocks() = default;
  SmallBlocks(const SmallBlocks&) = delete;
  SmallBlocks& operator=(const SmallBlocks&) = delete;
  ~SmallBlocks() {
    for (Kept& kept : sizes) {
      while (kept.number > 0) c10::free_cpu(kept.blocks[--kept.number]);
    }
  }

  std::array<Kept, kNumSizes> sizes;
};

template <size_t size>
void Free(void* block) {
  Kept& kept = base::OfThread<SmallBlocks>().sizes[size];
  if (kept.number == std::size(kept.blocks)) return c10::free_cpu(block);
  kept.blocks[kept.number++] = block;
}

// A deleter tells the size.
constexpr auto kDeleters = []<size_t... size>(std::index_sequence<size...>) {
  return std::array<c10::DeleterFnPtr, sizeof...(size)>{&Free<size>...};
}
(std::make_index_sequence<kNumSizes>());

}  // namespace

c10::DataPtr SmallBlock(size_t size_bytes) {
  const auto size = static_cast<size_t>(std::bit_width((size_bytes - 1) / kSmallest));
  Kept& kept = base::OfThread<SmallBlocks>().sizes[size];
  void* const block = kept.number > 0 ? kept.blocks[--kept.number] : c10::alloc_cpu(kSmallest << size);
  return c10::DataPtr(block, block, kDeleters[size], c10::Device(c10::kCPU));
}

bool IsSmallBlock(const c10::DataPtr& pointer) {
  return std::ranges::find(kDeleters, pointer.get_deleter()) != kDeleters.end();
}

}  // namespace torch_lazy::lazy
