// SPDX-License-Identifier: Apache-2.0
// PyTorch's CUDA, as the CUDA backend needs it, by what libc10 and libtorch_cpu know of devices: one binary serves
// machines with and without a GPU.
#include <dlfcn.h>

#include <string>

#include <ATen/Context.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "backends/cuda/cuda_host.h"
#include "backends/registry.h"
#include "base/flags.h"
#include "base/log.h"
#include "lazy/eager/current_device.h"
#include "lazy/host/raise.h"

namespace torch_lazy::lazy {
namespace {

// A program that links libtorch_cpu alone has CUDA all the same where there is a GPU. Opened at load: PyTorch looks for
// CUDA's hooks once, and believes for ever that there are none.
void OpenTorchCuda() {
  const base::BackendChoice choice = base::Backend();
  if (choice != base::BackendChoice::kCuda && choice != base::BackendChoice::kAuto) return;
  if (dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD) != nullptr || dlopen("libcuda.so.1", RTLD_LAZY) == nullptr)
    return;
  Dl_info torch;
  if (dladdr(reinterpret_cast<void*>(&at::globalContext), &torch) == 0) return;
  const std::string path = torch.dli_fname;
  const std::string library = path.substr(0, path.rfind('/') + 1) + "libtorch_cuda.so";
  if (dlopen(library.c_str(), RTLD_LAZY | RTLD_GLOBAL) == nullptr) LAZY_LOG(1, "no PyTorch for CUDA: ", dlerror());
}

c10::Allocator* CudaAllocator() { return c10::GetAllocator(c10::kCUDA); }

absl::StatusOr<void*> Allocate(size_t size_bytes) {
  try {
    return CudaAllocator()->raw_allocate(size_bytes);
  } catch (...) {
    return StatusOfError();
  }
}

// Of a device that is lost, or at the process's end, there is nothing to give back.
void Free(void* memory, size_t) {
  try {
    CudaAllocator()->raw_deallocate(memory);
  } catch (const std::exception& error) {
    LAZY_LOG(1, "memory is not given back: ", error.what());
  }
}

const backends::CudaHost* FindCuda() {
  if (!at::hasCUDA()) {
    const c10::impl::DeviceGuardImplInterface* const cuda =
        c10::impl::device_guard_impl_registry[static_cast<size_t>(c10::kCUDA)].load();
    // Fake tensors make a guard for GPUs that are not there; CUDA's own has a driver.
    if (cuda != nullptr && cuda->deviceCount() > 0 && dlopen("libcuda.so.1", RTLD_LAZY) != nullptr) {
      base::WarnOnce(
          "late",
          "the CPU is used although there is a GPU: PyTorch looked for CUDA before libtorch_lazy.so was loaded");
    }
    return nullptr;
  }
  at::globalContext().lazyInitDevice(c10::kCUDA);
  static const backends::CudaHost host{
      .device = [] { return CurrentDevice(); },
      .allocate = &Allocate,
      .free = &Free,
      .stream =
          [] {
            const c10::impl::DeviceGuardImplInterface& cuda = *c10::impl::getDeviceGuardImpl(c10::kCUDA);
            return cuda.getStreamNativeHandle(
                cuda.getStream(c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(CurrentDevice()))));
          },
  };
  return &host;
}

[[maybe_unused]] const bool registered = [] {
  OpenTorchCuda();
  backends::SetCudaFinder(&FindCuda);
  return true;
}();

}  // namespace
}  // namespace torch_lazy::lazy
