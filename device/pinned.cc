// SPDX-License-Identifier: Apache-2.0
#include "device/pinned.h"

#include <map>
#include <mutex>

#include <ATen/Context.h>
#include <c10/core/CPUAllocator.h>

namespace torch_lazy::device {
namespace {

// First and last byte of each living block.
class Blocks {
 public:
  static Blocks& Instance() {
    static Blocks* const blocks = new Blocks;
    return *blocks;
  }
  void Add(const void* pointer, size_t size_bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto first = reinterpret_cast<uintptr_t>(pointer);
    last_[first] = first + size_bytes - 1;
  }
  void Remove(const void* pointer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    last_.erase(reinterpret_cast<uintptr_t>(pointer));
  }
  bool Contain(const void* pointer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    const auto after = last_.upper_bound(address);
    return after != last_.begin() && address <= std::prev(after)->second;
  }

 private:
  std::mutex mutex_;
  std::map<uintptr_t, uintptr_t> last_;
};

void Delete(void* context) {
  auto* memory = static_cast<c10::DataPtr*>(context);
  Blocks::Instance().Remove(memory->get());
  delete memory;
}

class HostAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t size_bytes) override {
    auto* memory = new c10::DataPtr(c10::GetCPUAllocator()->allocate(size_bytes));
    void* const pointer = memory->get();
    if (pointer != nullptr) Blocks::Instance().Add(pointer, size_bytes);
    return c10::DataPtr(pointer, memory, &Delete, c10::Device(c10::kCPU));
  }
  void copy_data(void* to, const void* from, size_t size_bytes) const override {
    default_copy_data(to, from, size_bytes);
  }
};

}  // namespace

c10::Allocator* PinnedAllocator() {
  if (at::hasCUDA()) return at::detail::getCUDAHooks().getPinnedMemoryAllocator();
  static HostAllocator* const allocator = new HostAllocator;
  return allocator;
}

bool IsPinned(const void* pointer) {
  return at::hasCUDA() ? at::detail::getCUDAHooks().isPinnedPtr(pointer) : Blocks::Instance().Contain(pointer);
}

}  // namespace torch_lazy::device
