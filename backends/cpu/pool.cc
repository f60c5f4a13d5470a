// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/pool.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>

#include "base/metrics.h"

namespace torch_lazy::backends {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kMapped = kHugePage;  // from here on blocks are mappings of their own
constexpr size_t kPage = 4096;
constexpr size_t kAlwaysKept = size_t{256}
                               << 20;  // idle bytes that are never given back to the system

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
  return {4 * (log - 1) + static_cast<int>(quarter) - 1,
          ((size_t{1} << log) + quarter * step) * kAlignment};
}

size_t MappedBytes(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// A mapping on a huge page's boundary: page faults then come 512 times less often, where the kernel
// plays along. It ends where the block does, so that no more than the block is ever cleared.
void* Map(size_t bytes) {
  const size_t wanted = MappedBytes(bytes);
  void* mapped =
      mmap(nullptr, wanted + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* const start = static_cast<char*>(mapped);
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(start) % kHugePage) % kHugePage;
  if (before > 0) munmap(start, before);
  if (before < kHugePage) munmap(start + before + wanted, kHugePage - before);
  madvise(start + before, wanted, MADV_HUGEPAGE);
  return start + before;
}

void* TakeFromSystem(size_t bytes) {
  return bytes >= kMapped ? Map(bytes) : aligned_alloc(kAlignment, bytes);
}

void GiveToSystem(void* memory, size_t bytes) {
  if (bytes >= kMapped) {
    munmap(memory, MappedBytes(bytes));
  } else {
    free(memory);
  }
}

// The inverse of ClassOf.
size_t BytesOfClass(int index) {
  if (index < 4) return (index + 1) * kAlignment;
  const int log = index / 4 + 1;
  return ((size_t{1} << log) + (index % 4 + 1) * (size_t{1} << (log - 2))) * kAlignment;
}

}  // namespace

Pool::~Pool() {
  absl::MutexLock lock(&mutex_);
  while (idle_bytes_ > 0) DropLargest();
}

void* Pool::Allocate(size_t size_bytes) {
  const SizeClass size_class = ClassOf(size_bytes);
  absl::MutexLock lock(&mutex_);
  void* memory = nullptr;
  if (size_class.index < static_cast<int>(idle_.size()) && !idle_[size_class.index].empty()) {
    memory = idle_[size_class.index].back();
    idle_[size_class.index].pop_back();
    idle_bytes_ -= size_class.bytes;
  } else {
    memory = TakeFromSystem(size_class.bytes);
    while (memory == nullptr && idle_bytes_ > 0) {
      DropLargest();
      memory = TakeFromSystem(size_class.bytes);
    }
    if (memory == nullptr) return nullptr;
  }
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
  if (size_class.index >= static_cast<int>(idle_.size())) idle_.resize(size_class.index + 1);
  idle_[size_class.index].push_back(memory);
  idle_bytes_ += size_class.bytes;
  // What was never needed at once need not be kept: live and idle bytes together stay near the
  // peak.
  while (idle_bytes_ > kAlwaysKept && idle_bytes_ + live_bytes_ > peak_bytes_ + peak_bytes_ / 4)
    DropLargest();
}

void Pool::DropLargest() {
  for (int index = static_cast<int>(idle_.size()) - 1; index >= 0; --index) {
    if (idle_[index].empty()) continue;
    GiveToSystem(idle_[index].back(), BytesOfClass(index));
    idle_[index].pop_back();
    idle_bytes_ -= BytesOfClass(index);
    return;
  }
}

size_t Pool::idle_bytes() const {
  absl::MutexLock lock(&mutex_);
  return idle_bytes_;
}

}  // namespace torch_lazy::backends
