// SPDX-License-Identifier: Apache-2.0
#include "lazy/eager/eager_device.h"

#include <cstring>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "backends/registry.h"
#include "lazy/eager/current_device.h"
#include "lazy/eager/geometry.h"
#include "lazy/eager/on_host.h"

namespace torch_lazy::lazy {

c10::Device EagerDevice() {
  return IsOnHost() ? c10::Device(c10::kCPU) : c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(CurrentDevice()));
}

c10::DeviceAllocator* GpuAllocator() {
  return IsGpuInUse() ? dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(c10::kCUDA)) : nullptr;
}

Multiprocessors MultiprocessorsOfGpu() {
  const backends::Multiprocessors of_gpu = backends::Get().multiprocessors();
  return {of_gpu.count, of_gpu.threads_of_each};
}

void CopyContent(const c10::Storage& to, const c10::Storage& from, size_t size_bytes) {
  if (size_bytes == 0) return;
  if (IsOnHost()) {
    std::memcpy(to.mutable_data(), from.data(), size_bytes);
    return;
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const int64_t size = static_cast<int64_t>(size_bytes);
  const Geometry bytes{.dtype = at::kByte, .sizes = {size}, .strides = {1}};
  Alias(to, bytes).copy_(Alias(from, bytes));
}

int64_t CurrentStreamId() {
  const std::optional<c10::Stream> stream = CurrentStream();
  return stream ? stream->id() : 0;
}

std::optional<c10::Stream> CurrentStream() {
  if (IsOnHost()) return std::nullopt;
  return c10::impl::getDeviceGuardImpl(c10::kCUDA)->getStream(EagerDevice());
}

void WaitForEagerDevice() {
  if (!IsOnHost()) c10::impl::getDeviceGuardImpl(c10::kCUDA)->synchronizeDevice(EagerDevice().index());
}

}  // namespace torch_lazy::lazy
