// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace/placeholder.h"

#include <memory>

#include <c10/core/StorageImpl.h>
#include <c10/core/impl/COWDeleter.h>

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

}  // namespace

c10::DataPtr Placeholder(const c10::StorageImpl* storage, c10::Device device) {
  void* const address = reinterpret_cast<void*>(kUnmapped | reinterpret_cast<uintptr_t>(storage));
  return c10::DataPtr(address, &SharedContext(), &c10::impl::cow::cow_deleter, device);
}

bool HasPlaceholder(c10::StorageImpl* storage) { return IsArmed(storage->_mutable_data_ptr_no_checks()); }

bool IsPlaceholder(const void* address) { return reinterpret_cast<uintptr_t>(address) >= kUnmapped; }

void GiveBackAccess() { SharedContext().increment_refcount(); }

void ArmPlaceholder(c10::StorageImpl* storage) {
  if (HasPlaceholder(storage)) return;
  storage->set_data_ptr_noswap(Placeholder(storage, storage->device()));
}

void ReleasePlaceholder(c10::StorageImpl* storage) {
  c10::DataPtr& pointer = storage->_mutable_data_ptr_no_checks();
  if (IsArmed(pointer)) pointer.release_context();
}

}  // namespace torch_lazy::lazy
