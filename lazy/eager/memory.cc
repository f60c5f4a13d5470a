// SPDX-License-Identifier: Apache-2.0
#include "lazy/eager/memory.h"

#include <cstring>
#include <memory>
#include <mutex>

#include <pthread.h>

#include <c10/core/CPUAllocator.h>

#include "absl/container/flat_hash_map.h"
#include "backends/registry.h"
#include "lazy/eager/current_device.h"
#include "lazy/eager/eager_device.h"
#include "lazy/eager/on_host.h"
#include "lazy/eager/small_blocks.h"
#include "lazy/host/fork.h"

namespace torch_lazy::lazy {
namespace {

// The size travels with the pointer: the pool wants it back.
struct Block {
  void* memory;
  size_t size_bytes;
};

void FreeBlock(void* context) {
  Block* block = static_cast<Block*>(context);
  if (IsForked()) return;
  backends::Get().Free(block->memory, block->size_bytes);
  delete block;
}

class PoolAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t size_bytes) override {
    std::unique_ptr<Block> block(new Block{nullptr, size_bytes});
    block->memory = backends::Get().Allocate(size_bytes);
    TORCH_CHECK_WITH(OutOfMemoryError, block->memory != nullptr, "lazy: out of memory. Tried to allocate ", size_bytes,
                     " bytes");
    void* const memory = block->memory;
    return c10::DataPtr(memory, block.release(), &FreeBlock, c10::Device(c10::kCPU));
  }
  void copy_data(void* to, const void* from, size_t size_bytes) const override { std::memcpy(to, from, size_bytes); }
};

thread_local int num_scopes = 0;
constexpr size_t kWorthPooling = kMostSmallBytes;

// Its pointers are their own context, as raw_allocate() wants them, so sizes are kept beside.
class ResultAllocator final : public c10::Allocator {
 public:
  explicit ResultAllocator(c10::Allocator* former) : former_(former) {}

  c10::DataPtr allocate(size_t size_bytes) override {
    if (num_scopes == 0 || size_bytes == 0) return former_->allocate(size_bytes);
    if (size_bytes < kWorthPooling) return former_is_malloc_ ? SmallBlock(size_bytes) : former_->allocate(size_bytes);
    void* memory = backends::Get().Allocate(size_bytes);
    if (memory == nullptr) return former_->allocate(size_bytes);  // raises the error that PyTorch's users know
    std::lock_guard<std::mutex> lock(lock_);
    sizes_.emplace(memory, size_bytes);
    return c10::DataPtr(memory, memory, &Free, c10::Device(c10::kCPU));
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, size_t size_bytes) const override { std::memcpy(to, from, size_bytes); }

  static ResultAllocator*& Installed() {
    static ResultAllocator* installed = nullptr;
    return installed;
  }

  static void Lock() { Installed()->lock_.lock(); }
  static void Unlock() { Installed()->lock_.unlock(); }

 private:
  static void Free(void* memory) { Installed()->FreeEither(memory); }

  void FreeEither(void* memory) {
    size_t size_bytes = 0;
    {
      std::lock_guard<std::mutex> lock(lock_);
      auto found = sizes_.find(memory);
      if (found != sizes_.end()) {
        size_bytes = found->second;
        sizes_.erase(found);
      }
    }
    if (size_bytes == 0)
      former_->raw_deallocate(memory);
    else if (!IsForked())
      backends::Get().Free(memory, size_bytes);
  }

  c10::Allocator* const former_;
  const bool former_is_malloc_ = former_ == c10::GetDefaultCPUAllocator();  // so it can free small blocks
  std::mutex lock_;
  absl::flat_hash_map<void*, size_t> sizes_;  // of the blocks in use
};

}  // namespace

void InstallPooledResults() {
  ResultAllocator::Installed() = new ResultAllocator(c10::GetCPUAllocator());
  c10::SetCPUAllocator(ResultAllocator::Installed());
  // A child frees tensors of the CPU, too, whoever had the lock when it was forked.
  pthread_atfork(&ResultAllocator::Lock, &ResultAllocator::Unlock, &ResultAllocator::Unlock);
}

PooledResults::PooledResults() { ++num_scopes; }
PooledResults::~PooledResults() { --num_scopes; }

bool IsPooled(const c10::Storage& content) {
  const c10::DeleterFnPtr deleter = content.data_ptr().get_deleter();
  return deleter == &FreeBlock || IsSmallBlock(content.data_ptr()) ||
         deleter == c10::GetCPUAllocator()->raw_deleter() || deleter == c10::GetDefaultCPUAllocator()->raw_deleter();
}

bool IsAllocated(const c10::Storage& content) {
  return IsPooled(content) ||
         (!IsOnHost() && content.data_ptr().get_deleter() == c10::GetAllocator(EagerDevice().type())->raw_deleter());
}

c10::Storage NewContent(size_t size_bytes) {
  if (!IsOnHost()) {
    const OnEagerDevice on;
    c10::Allocator* const allocator = c10::GetAllocator(EagerDevice().type());
    return c10::Storage(c10::Storage::use_byte_size_t(), size_bytes, allocator->allocate(size_bytes), allocator,
                        /*resizable=*/true);
  }
  static PoolAllocator* const allocator = new PoolAllocator;
  return c10::Storage(c10::Storage::use_byte_size_t(), size_bytes, allocator->allocate(size_bytes), allocator,
                      /*resizable=*/true);
}

c10::Storage NewResult(size_t size_bytes) {
  const PooledResults pooled;
  c10::Allocator* const allocator = c10::GetCPUAllocator();
  return c10::Storage(c10::Storage::use_byte_size_t(), size_bytes, allocator->allocate(size_bytes), allocator,
                      /*resizable=*/true);
}

}  // namespace torch_lazy::lazy
