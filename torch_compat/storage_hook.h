// SPDX-License-Identifier: Apache-2.0
// A storage that is asked before somebody writes through its address.
//
// Note [Mutable access]
// Nothing in a StorageImpl is virtual, but before it gives its address out to be written through it materialises. A
// hooked storage shows a placeholder in the place of its address, and is armed while it does. When it is materialised
// then, it answers with memory, which stays its own: until Arm() it is as any other. Reading goes past the hook.
//
// Until 2.12 what is materialised is a copy-on-write pointer, by its deleter: PyTorch lets the storage's allocator
// clone the bytes, that is, allocate() and then copy_data(), and keeps the result. So the placeholder is such a
// pointer, and each storage is its own allocator: allocate() answers, and there is nothing to copy. From 2.13 on a
// storage holds a function, which PyTorch calls and then forgets. A copy-on-write pointer without it is given out as it
// is.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>
#include <torch/headeronly/version.h>

#if TORCH_VERSION_MINOR < 13
#include <c10/core/impl/COWDeleter.h>
#endif

namespace torch_lazy::torch_compat {

class HookedStorage : public c10::StorageImpl, public c10::Allocator {
 public:
  // Shows `placeholder` from now on. Does nothing while the storage is armed.
  void Arm(void* placeholder);

  // To be called before the pointer goes, be it that the storage dies: the placeholder is nobody's memory.
  void Disarm();

  // Whether the storage has been given another address past the hook, since it has shown one or KeepAddress() was
  // called: swap_data_ptr(), which PyTorch has from 2.12 on, gives it that of another storage, and its allocator.
#if TORCH_VERSION_MINOR < 12
  bool IsSwapped() const { return false; }
#else
  bool IsSwapped() const { return data_ptr().get() != shown_; }
#endif
  void KeepAddress();

  bool IsArmed() { return _mutable_data_ptr_no_checks().get_context() == &Mark(); }

  c10::DataPtr allocate(size_t size_bytes) final;
  // copy_data() is to do nothing where it comes from a placeholder.

 protected:
  HookedStorage(size_t size_bytes, void* placeholder, c10::Device device);

  // What is written through from now on, in the place of the placeholder.
  virtual c10::DataPtr Answer() = 0;

  // For who asks the storage's allocator for memory of their own.
  virtual c10::DataPtr NewMemory(size_t size_bytes) = 0;

 private:
  void* shown_;
#if TORCH_VERSION_MINOR < 13
  using Context = c10::impl::cow::COWDeleterContext;
#else
  struct Context {};
  static void Materialize(c10::StorageImpl* storage);
#endif
  static Context& Mark();  // the context of all placeholders
  static c10::DataPtr Pointer(void* placeholder, c10::Device device);
};

}  // namespace torch_lazy::torch_compat
