// SPDX-License-Identifier: Apache-2.0
// Nested tensors: what asks for a device, or for sizes, which lie on the host.
#include "device/eager_overrides/kernels.h"

namespace torch_lazy::device {
namespace {

// These kernels of the CPU are kernels of any device: they call others on the buffer.
void CallKernelOfCpu(const c10::OperatorHandle& handle, c10::DispatchKeySet, torch::jit::Stack* stack) {
  handle.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::NestedTensorCPU), stack);
}

}  // namespace

void RegisterNested(torch::Library& aten) {
  for (const char* name : {"_nested_tensor_size", "_nested_tensor_storage_offsets", "_nested_tensor_strides",
                           "_to_copy", "copy_", "empty_like", "is_same_size"}) {
    aten.impl(name, torch::CppFunction::makeFromBoxedFunction<&CallKernelOfCpu>());
  }
}

}  // namespace torch_lazy::device
