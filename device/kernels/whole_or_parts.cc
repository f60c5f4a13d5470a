// SPDX-License-Identifier: Apache-2.0
#include "device/kernels/whole_or_parts.h"

#include <algorithm>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

namespace torch_lazy::device {
namespace {

bool NeedsParts(const c10::IValue& argument) {
  if (!argument.isTensor()) return false;
  const at::Tensor& tensor = argument.toTensor();
  return tensor.defined() && (tensor.is_complex() || tensor._fw_grad(/*level=*/0).defined());
}

class WholeOrParts final : public c10::OperatorKernel {
 public:
  WholeOrParts(c10::SafeKernelFunction whole, lazy::Runner parts) : whole_(std::move(whole)), parts_(parts) {}

  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    const c10::ArrayRef<c10::IValue> arguments = torch::jit::last(*stack, handle.schema().arguments().size());
    if (std::any_of(arguments.begin(), arguments.end(), NeedsParts)) {
      parts_(stack);
    } else {
      whole_.callBoxed(handle, keys, stack);
    }
  }

 private:
  c10::SafeKernelFunction whole_;
  lazy::Runner parts_;
};

}  // namespace

void RegisterWholeOrParts(torch::Library& aten, const char* name, lazy::Runner parts) {
  const c10::OperatorHandle handle = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  c10::SafeKernelFunction whole = handle.getComputedKernelForDispatchKey(c10::DispatchKey::AutogradPrivateUse1);
  aten.impl(name, torch::CppFunction::makeFromBoxedFunctor(std::make_unique<WholeOrParts>(std::move(whole), parts)));
}

}  // namespace torch_lazy::device
