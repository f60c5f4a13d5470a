// SPDX-License-Identifier: Apache-2.0
// Eager CUDA beside us.
//
// Note [One accelerator]
// PyTorch takes one device type for *the* accelerator, and a PrivateUse1 device for it as soon as one has a name: no
// hook is asked. In a program of the CPU, `init_process_group()` then wants to know which backend of c10d serves
// "lazy", FSDP and DataParallel look for the model there, and loaders pin memory. In one of CUDA the autograd engine
// finds no streams for CUDA's nodes, and every backward pass dies of an internal assertion ("opt_ready_stream &&
// opt_parent_stream").
//
// What is asked is two functions, across libraries; so in libtorch_cpu we answer for them, by its table of imported
// addresses. Our device is the accelerator once it holds a tensor, and until CUDA is used: then CUDA is, as it is
// without us, and ours is none, which to the engine means one without streams to wait for: all of ours are one queue.
// Without CUDA it is not the accelerator to the engine either, which saves it the same.
//
// A program that asks before its first tensor wants to know where to put that: to it our device is the accelerator,
// unless the machine has CUDA's driver. Such questions come from Python (`torch_lazy/_accelerator.py` tells them from
// PyTorch's own).
//
// Where a version of PyTorch asks in another way, its table has no such entries and nothing changes.
#include "device/accelerator.h"

#include <dlfcn.h>

#include <atomic>

#include <ATen/DeviceAccelerator.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>

#include "device/imports.h"
#include "lazy/trace/storage.h"

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

// Storages are numbered from 1 on: the next one has more once there was one.
bool IsInUse() { return lazy::LazyStorageImpl::NextSerial() > 1; }

thread_local int programs_questions = 0;

bool IsPrivateUse1Registered() {
  return (IsInUse() || programs_questions > 0) && !CudaIsInUse() && c10::is_privateuse1_backend_registered();
}

thread_local int not_the_accelerator = 0;

bool IsAccelerator(c10::DeviceType type) {
  return at::accelerator::isAccelerator(type) &&
         !(type == c10::kPrivateUse1 && (not_the_accelerator > 0 || !IsPrivateUse1Registered()));
}

[[maybe_unused]] const bool are_imports_replaced = [] {
  void* const asked = reinterpret_cast<void*>(&at::accelerator::isAccelerator);
  ReplaceImport(asked, reinterpret_cast<void*>(&c10::is_privateuse1_backend_registered),
                reinterpret_cast<void*>(&IsPrivateUse1Registered));
  ReplaceImport(asked, asked, reinterpret_cast<void*>(&IsAccelerator));
  return true;
}();

}  // namespace

NotTheAccelerator::NotTheAccelerator() { ++not_the_accelerator; }

NotTheAccelerator::~NotTheAccelerator() { --not_the_accelerator; }

bool IsLazyInUse() { return IsInUse(); }

void CountQuestions(int more) {
  static const bool has_driver = dlopen("libcuda.so.1", RTLD_LAZY) != nullptr && at::detail::getCUDAHooks().isBuilt();
  if (!has_driver) programs_questions += more;
}

}  // namespace torch_lazy::device
