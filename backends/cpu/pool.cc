// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/pool.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/faults.h"
#include "base/metrics.h"

namespace torch_lazy::backends {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kMapped = kHugePage;              // from here on blocks are mappings of their own
constexpr size_t kAlwaysKept = size_t{256} << 20;  // idle bytes the system never gets back

// Classes are multiples of 64 up to 256, then four to each power of two: at most a fifth is wasted.
struct SizeClass {
  int index;
  size_t bytes;
};

SizeClass ClassOf(size_t size_bytes) {
  const size_t units = std::max<size_t>((size_bytes + kAlignment - 1) / kAlignment, 1);
  if (units <= 4) return {static_cast<int>(units) - 1, units * kAlignment};
  const int log = std::bit_width(units - 1) - 1;  // 2^log < units <= 2^(log + 1)
  const size_t step = size_t{1} << (log - 2);
  const size_t quarter = (units - (size_t{1} << log) + step - 1) / step;  // 1..4
  return {4 * (log - 1) + static_cast<int>(quarter) - 1, ((size_t{1} << log) + quarter * step) * kAlignment};
}

// The inverse of ClassOf.
size_t BytesOfClass(int index) {
  if (index < 4) return (index + 1) * kAlignment;
  const int log = index / 4 + 1;
  return ((size_t{1} << log) + (index % 4 + 1) * (size_t{1} << (log - 2))) * kAlignment;
}

void* Pop(std::vector<void*>* blocks) {
  void* const block = blocks->back();
  blocks->pop_back();
  return block;
}

}  // namespace

Pool::~Pool() {
  absl::MutexLock lock(&mutex_);
  while (DropLargest()) continue;
}

void* Pool::Take(Blocks* blocks, size_t bytes) {
  if (!blocks->idle.empty()) {
    idle_bytes_ -= bytes;
    return Pop(&blocks->idle);
  }
  if (!blocks->empty.empty()) return Pop(&blocks->empty);
  blocks->MakeRoom();
  void* const memory = bytes >= kMapped ? MapBlock(bytes) : slabs_.Carve(bytes);
  blocks->number += memory != nullptr;
  return memory;
}

void Pool::Blocks::MakeRoom() {
  if (number < idle.capacity()) return;
  const size_t room = std::max<size_t>(2 * number, 8);
  empty.reserve(room);
  idle.reserve(room);
}

void* Pool::MapBlock(size_t bytes) {
  if (!settled_) early_.push_back({nullptr, bytes});
  void* const memory = Map(bytes, settled_);
  if (settled_) return memory;
  if (memory != nullptr) {
    early_.back().memory = memory;
  } else {
    early_.pop_back();
  }
  return memory;
}

void Pool::UnmapBlock(void* memory, size_t bytes) {
  std::erase_if(early_, [memory](const EarlyBlock& block) { return block.memory == memory; });
  Unmap(memory, bytes);
}

// What is idle goes back to the system where it has no more.
void* Pool::TakeOrDrop(Blocks* blocks, size_t bytes) {
  try {
    void* memory = nullptr;
    do {
      memory = Take(blocks, bytes);
    } while (memory == nullptr && DropLargest());
    return memory;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void* Pool::Allocate(size_t size_bytes) {
  if (base::MustFail()) return nullptr;
  const SizeClass size_class = ClassOf(size_bytes);
  absl::MutexLock lock(&mutex_);
  void* const memory = TakeOrDrop(&blocks_[size_class.index], size_class.bytes);
  if (memory == nullptr) return nullptr;
  live_bytes_ += size_class.bytes;
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  base::Count(base::Counter::kBytesLive, static_cast<int64_t>(size_class.bytes));
  base::RaiseTo(base::Counter::kBytesPeak, static_cast<int64_t>(live_bytes_));
  return memory;
}

void Pool::Free(void* memory, size_t size_bytes) {
  const SizeClass size_class = ClassOf(size_bytes);
  absl::MutexLock lock(&mutex_);
  live_bytes_ -= size_class.bytes;
  base::Count(base::Counter::kBytesLive, -static_cast<int64_t>(size_class.bytes));
  blocks_[size_class.index].idle.push_back(memory);
  idle_bytes_ += size_class.bytes;
  // What was never needed at once need not be kept: live and idle bytes together stay near the
  // peak.
  while (idle_bytes_ > kAlwaysKept && idle_bytes_ + live_bytes_ > peak_bytes_ + peak_bytes_ / 4) {
    if (!DropLargest()) break;
  }
}

bool Pool::DropLargest() {
  for (int index = kNumClasses - 1; index >= 0; --index) {
    Blocks& blocks = blocks_[index];
    if (blocks.idle.empty()) continue;
    const size_t bytes = BytesOfClass(index);
    if (bytes >= kMapped) {
      UnmapBlock(Pop(&blocks.idle), bytes);
      --blocks.number;
    } else if (Slabs::DropPages(blocks.idle.back(), bytes)) {
      blocks.empty.push_back(Pop(&blocks.idle));
    } else {
      return false;  // the smaller ones have no page of their own either
    }
    idle_bytes_ -= bytes;
    return true;
  }
  return false;
}

void Pool::Settle() {
  absl::MutexLock lock(&mutex_);
  if (settled_) return;
  settled_ = true;
  slabs_.WantHugePages();
  for (const EarlyBlock& block : early_) WantHugePages(block.memory, block.bytes);
  early_ = {};
}

size_t Pool::idle_bytes() const {
  absl::MutexLock lock(&mutex_);
  return idle_bytes_;
}

}  // namespace torch_lazy::backends
