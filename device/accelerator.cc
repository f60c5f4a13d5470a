// SPDX-License-Identifier: Apache-2.0
// Eager CUDA beside us.
//
// Note [One accelerator]
// PyTorch takes one device type for *the* accelerator, and a PrivateUse1 device for it as soon as one has a name. The
// autograd engine then finds no streams for CUDA's nodes, and every backward pass over CUDA tensors in the process dies of
// an internal assertion ("opt_ready_stream && opt_parent_stream"). No hook is asked, so nothing that a device may implement
// changes it. What is asked is two functions, across libraries; so in libtorch_cpu we answer for them, by its table of
// imported addresses: from CUDA's first use on, CUDA is the accelerator, as it is without us, and our device is none, which
// to the engine means one without streams to wait for: all of ours are one queue.
//
// Without CUDA our device is the accelerator, but not to the engine, which saves it the same. Where a version of PyTorch asks
// in another way, its table has no such entries and nothing changes either.
#include "device/accelerator.h"

#include <atomic>

#include <ATen/DeviceAccelerator.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>

#include "device/imports.h"

namespace torch_lazy::device {
namespace {

// Asked often, and without a call to the driver, which would spoil a later fork.
bool CudaIsInUse() {
  static std::atomic<bool> in_use{false};
  if (in_use.load(std::memory_order_relaxed)) return true;
  if (!at::detail::getCUDAHooks().isBuilt()) return false;
  auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(c10::kCUDA));
  in_use = allocator != nullptr && allocator->initialized();
  return in_use;
}

bool IsPrivateUse1Registered() { return !CudaIsInUse() && c10::is_privateuse1_backend_registered(); }

thread_local int not_the_accelerator = 0;

bool IsAccelerator(c10::DeviceType type) {
  return at::accelerator::isAccelerator(type) && !(type == c10::kPrivateUse1 && (not_the_accelerator > 0 || CudaIsInUse()));
}

[[maybe_unused]] const bool done = [] {
  void* const asked = reinterpret_cast<void*>(&at::accelerator::isAccelerator);
  ReplaceImport(asked, reinterpret_cast<void*>(&c10::is_privateuse1_backend_registered), reinterpret_cast<void*>(&IsPrivateUse1Registered));
  ReplaceImport(asked, asked, reinterpret_cast<void*>(&IsAccelerator));
  return true;
}();

}  // namespace

NotTheAccelerator::NotTheAccelerator() { ++not_the_accelerator; }

NotTheAccelerator::~NotTheAccelerator() { --not_the_accelerator; }

}  // namespace torch_lazy::device
