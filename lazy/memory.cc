// SPDX-License-Identifier: Apache-2.0
#include "lazy/memory.h"

#include <cstring>

#include "backends/registry.h"

namespace torch_lazy::lazy {
namespace {

// The size travels with the pointer: the pool wants it back.
struct Block {
  void* memory;
  size_t size_bytes;
};

void FreeBlock(void* context) {
  Block* block = static_cast<Block*>(context);
  backends::Get().Free(block->memory, block->size_bytes);
  delete block;
}

class PoolAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t size_bytes) override {
    void* memory = backends::Get().Allocate(size_bytes);
    return c10::DataPtr(memory, new Block{memory, size_bytes}, &FreeBlock, c10::Device(c10::kCPU));
  }
  void copy_data(void* to, const void* from, size_t size_bytes) const override { std::memcpy(to, from, size_bytes); }
};

}  // namespace

c10::Storage NewContent(size_t size_bytes) {
  static PoolAllocator* const allocator = new PoolAllocator;
  return c10::Storage(c10::Storage::use_byte_size_t(), size_bytes, allocator->allocate(size_bytes), allocator,
                      /*resizable=*/true);
}

}  // namespace torch_lazy::lazy
