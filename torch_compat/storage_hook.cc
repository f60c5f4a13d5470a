// SPDX-License-Identifier: Apache-2.0
#include "torch_compat/storage_hook.h"

#include <memory>
#include <utility>

namespace torch_lazy::torch_compat {

HookedStorage::HookedStorage(size_t size_bytes, void* placeholder, c10::Device device)
    : c10::StorageImpl(use_byte_size_t(), size_bytes, Pointer(placeholder, device), /*allocator=*/this,
                       /*resizable=*/true),
      shown_(placeholder) {
#if TORCH_VERSION_MINOR >= 13
  set_materializer(&Materialize);
#endif
}

void HookedStorage::KeepAddress() {
  shown_ = _mutable_data_ptr_no_checks().get();
  set_allocator(this);
}

void HookedStorage::Disarm() {
  if (IsArmed()) _mutable_data_ptr_no_checks().release_context();
}

#if TORCH_VERSION_MINOR < 13

// PyTorch counts it down at each materialisation, and would take the pointer over instead of cloning it at the last
// one, so the count starts high and every answer gives back what it takes. A storage that dies takes nothing: it is
// disarmed.
HookedStorage::Context& HookedStorage::Mark() {
  static Context* const context = [] {
    constexpr int kSpare = 4096;
    auto* made = new Context(std::unique_ptr<void, c10::DeleterFnPtr>(nullptr, &c10::detail::deleteNothing));
    for (int i = 0; i < kSpare; ++i) made->increment_refcount();
    return made;
  }();
  return *context;
}

c10::DataPtr HookedStorage::Pointer(void* placeholder, c10::Device device) {
  return c10::DataPtr(placeholder, &Mark(), &c10::impl::cow::cow_deleter, device);
}

void HookedStorage::Arm(void* placeholder) {
  if (IsArmed()) return;
  set_data_ptr_noswap(Pointer(placeholder, device()));
  KeepAddress();
}

c10::DataPtr HookedStorage::allocate(size_t size_bytes) {
  if (!IsArmed() || size_bytes != nbytes()) return NewMemory(size_bytes);
  c10::DataPtr answer = Answer();
  shown_ = answer.get();
  Mark().increment_refcount();
  return answer;
}

#else

HookedStorage::Context& HookedStorage::Mark() {
  static Context mark;
  return mark;
}

c10::DataPtr HookedStorage::Pointer(void* placeholder, c10::Device device) {
  return c10::DataPtr(placeholder, &Mark(), &c10::detail::deleteNothing, device);
}

void HookedStorage::Arm(void* placeholder) {
  if (IsArmed()) return;
  set_data_ptr_noswap(Pointer(placeholder, device()));
  KeepAddress();
  if (!has_materializer()) set_materializer(&Materialize);
}

// Where somebody has put another pointer into the storage past the hook there is nothing to answer.
void HookedStorage::Materialize(c10::StorageImpl* storage) {
  auto* hooked = static_cast<HookedStorage*>(storage);
  if (!hooked->IsArmed()) return;
  hooked->set_data_ptr_no_materialize(hooked->Answer());
  hooked->KeepAddress();
}

c10::DataPtr HookedStorage::allocate(size_t size_bytes) { return NewMemory(size_bytes); }

#endif

}  // namespace torch_lazy::torch_compat
