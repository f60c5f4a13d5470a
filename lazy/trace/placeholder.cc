// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace/placeholder.h"

#include <memory>

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/COWDeleter.h>

#include "lazy/cuda/graph_result.h"
#include "lazy/eager/current_device.h"
#include "lazy/eager/eager_device.h"
#include "lazy/trace/storage.h"

namespace torch_lazy::lazy {
namespace {

using c10::impl::cow::COWDeleterContext;

// The context of all placeholders. PyTorch counts it down at each materialisation, and would take the pointer over
// instead of cloning it at the last one, so the count starts high and every access gives back what it takes. A storage
// that dies takes nothing: its placeholder is released, not deleted.
COWDeleterContext& SharedContext() {
  static COWDeleterContext* const context = [] {
    constexpr int kSpare = 4096;
    auto* made = new COWDeleterContext(std::unique_ptr<void, c10::DeleterFnPtr>(nullptr, &c10::detail::deleteNothing));
    for (int i = 0; i < kSpare; ++i) made->increment_refcount();
    return made;
  }();
  return *context;
}

// Bits 52 to 55 lie outside of what an operating system hands out, on x86-64 and on ARM64 alike. The rest is the
// storage's own address.
constexpr uintptr_t kUnmapped = uintptr_t{0xf} << 52;

bool IsArmed(const c10::DataPtr& pointer) { return pointer.get_deleter() == &c10::impl::cow::cow_deleter; }

void DeleteStorage(void* content) { delete static_cast<c10::Storage*>(content); }

}  // namespace

c10::DataPtr StorageAllocator::allocate(size_t size_bytes) {
  LazyStorageImpl* storage = static_cast<LazyStorageImpl*>(this);
  const c10::Device device = storage->device();
  if (!IsArmed(storage->_mutable_data_ptr_no_checks()) || size_bytes != storage->nbytes()) {
    const OnDevice on(device.index());
    c10::DataPtr memory = c10::GetAllocator(EagerDevice().type())
                              ->allocate(size_bytes);  // a request for memory that has nothing to do with ours
    memory.unsafe_set_device(device);
    return memory;
  }
  c10::Storage content = Sync(storage, "data_ptr", /*writes=*/true);
  storage->Expose();
  MoveOut(content.unsafeGetStorageImpl());
  SharedContext().increment_refcount();
  void* const address = content.mutable_data();
  return c10::DataPtr(address, new c10::Storage(std::move(content)), &DeleteStorage, device);
}

void StorageAllocator::copy_data(void* to, const void* from, size_t size_bytes) const {
  if (reinterpret_cast<uintptr_t>(from) >= kUnmapped) return;
  c10::GetAllocator(EagerDevice().type())->copy_data(to, from, size_bytes);
}

c10::DataPtr Placeholder(const LazyStorageImpl* storage, c10::Device device) {
  void* const address = reinterpret_cast<void*>(kUnmapped | reinterpret_cast<uintptr_t>(storage));
  return c10::DataPtr(address, &SharedContext(), &c10::impl::cow::cow_deleter, device);
}

void ArmPlaceholder(LazyStorageImpl* storage) {
  if (IsArmed(storage->_mutable_data_ptr_no_checks())) return;
  storage->set_data_ptr_noswap(Placeholder(storage, storage->device()));
}

void ReleasePlaceholder(LazyStorageImpl* storage) {
  c10::DataPtr& pointer = storage->_mutable_data_ptr_no_checks();
  if (IsArmed(pointer)) pointer.release_context();
}

}  // namespace torch_lazy::lazy
