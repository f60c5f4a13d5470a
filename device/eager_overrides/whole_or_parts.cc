// SPDX-License-Identifier: Apache-2.0
#include "device/eager_overrides/whole_or_parts.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

namespace torch_lazy::device {
namespace {

class WholeOrParts final : public c10::OperatorKernel {
 public:
  WholeOrParts(c10::SafeKernelFunction whole, lazy::Runner parts, NeedsParts needs_parts)
      : whole_(std::move(whole)), parts_(parts), needs_parts_(needs_parts) {}

  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    const Arguments arguments = torch::jit::last(*stack, handle.schema().arguments().size());
    if (c10::impl::TorchDispatchModeTLS::any_modes_set() || needs_parts_(arguments)) {
      parts_(stack);
    } else {
      whole_.callBoxed(handle, keys, stack);
    }
  }

 private:
  c10::SafeKernelFunction whole_;
  lazy::Runner parts_;
  NeedsParts needs_parts_;
};

}  // namespace

bool IsOutOfTheOrdinary(Arguments arguments) {
  return AnyTensor(arguments, [](const at::Tensor& tensor) {
    return tensor.is_complex() || tensor._fw_grad(/*level=*/0).defined() ||
           tensor.key_set().has(c10::DispatchKey::Python);
  });
}

void RegisterWholeOrParts(torch::Library& aten, const char* name, lazy::Runner parts, NeedsParts needs_parts) {
  const c10::OperatorHandle handle = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  c10::SafeKernelFunction whole = handle.getComputedKernelForDispatchKey(c10::DispatchKey::AutogradPrivateUse1);
  aten.impl(name, torch::CppFunction::makeFromBoxedFunctor(
                      std::make_unique<WholeOrParts>(std::move(whole), parts, needs_parts)));
}

}  // namespace torch_lazy::device
