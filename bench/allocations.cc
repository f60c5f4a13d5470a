// SPDX-License-Identifier: Apache-2.0
// Once opened, tensors of the CPU take their memory from a pool like the device's, which counts: eager's side of
// bytes_peak.
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "backends/cpu/pool.h"
#include "base/metrics.h"

namespace {

using torch_lazy::backends::Pool;

class PooledAllocator final : public c10::Allocator {
 public:
  explicit PooledAllocator(c10::Allocator* former) : former_(former) {}

  c10::DataPtr allocate(size_t size_bytes) override {
    void* const memory = size_bytes == 0 ? nullptr : pool_.Allocate(size_bytes);
    std::lock_guard<std::mutex> lock(lock_);
    if (memory != nullptr) sizes_.emplace(memory, size_bytes);
    return {memory, memory, &Free, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, size_t size_bytes) const override {
    default_copy_data(to, from, size_bytes);
  }

  static PooledAllocator* Installed() {
    static PooledAllocator* const installed = new PooledAllocator(c10::GetCPUAllocator());
    return installed;
  }

 private:
  // Memory may be older than the pool.
  static void Free(void* memory) {
    PooledAllocator* const self = Installed();
    size_t size_bytes = 0;
    {
      std::lock_guard<std::mutex> lock(self->lock_);
      const auto found = self->sizes_.find(memory);
      if (found != self->sizes_.end()) {
        size_bytes = found->second;
        self->sizes_.erase(found);
      }
    }
    if (size_bytes != 0) {
      self->pool_.Free(memory, size_bytes);
    } else if (memory != nullptr) {
      self->former_->raw_deallocate(memory);
    }
  }

  c10::Allocator* const former_;
  Pool pool_;
  std::mutex lock_;
  std::unordered_map<void*, size_t> sizes_;
};

[[maybe_unused]] const bool installed = (c10::SetCPUAllocator(PooledAllocator::Installed()), true);

}  // namespace

extern "C" __attribute__((visibility("default"))) int64_t peak_bytes() {
  return torch_lazy::base::Get(torch_lazy::base::Counter::kBytesPeak);
}
