// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/slab.h"

#include <sys/mman.h>

#include <cstdint>

namespace torch_lazy::backends {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kSlab = size_t{32} << 20;  // untouched pages cost nothing; its end wastes 6 % at most

size_t WholePages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

void* Map(size_t bytes, bool huge) {
  const size_t wanted = WholePages(bytes);
  void* mapped = mmap(nullptr, wanted + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* const start = static_cast<char*>(mapped);
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(start) % kHugePage) % kHugePage;
  if (before > 0) munmap(start, before);
  munmap(start + before + wanted, kHugePage - before);
  if (huge) WantHugePages(start + before, wanted);
  return start + before;
}

void Unmap(void* memory, size_t bytes) { munmap(memory, WholePages(bytes)); }

void WantHugePages(void* memory, size_t bytes) { madvise(memory, WholePages(bytes), MADV_HUGEPAGE); }

Slabs::~Slabs() {
  for (char* slab : slabs_) Unmap(slab, kSlab);
}

void* Slabs::Carve(size_t bytes) {
  if (slabs_.empty() || used_bytes_ + bytes > kSlab) {
    slabs_.reserve(slabs_.size() + 1);
    void* const slab = Map(kSlab, huge_);
    if (slab == nullptr) return nullptr;
    slabs_.push_back(static_cast<char*>(slab));
    used_bytes_ = 0;
  }
  char* const block = slabs_.back() + used_bytes_;
  used_bytes_ += bytes;
  return block;
}

void Slabs::WantHugePages() {
  huge_ = true;
  for (char* slab : slabs_) backends::WantHugePages(slab, kSlab);
}

bool Slabs::DropPages(void* block, size_t bytes) {
  const auto begin = (reinterpret_cast<uintptr_t>(block) + kPage - 1) / kPage * kPage;
  const auto end = (reinterpret_cast<uintptr_t>(block) + bytes) / kPage * kPage;
  if (begin >= end) return false;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  return true;
}

}  // namespace torch_lazy::backends
