// SPDX-License-Identifier: Apache-2.0
#include "lazy/shapes/meta_call.h"

#include <dlfcn.h>

#include <exception>

#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"

namespace torch_lazy::lazy {
namespace {

// PyTorch's bindings carry Python's exceptions with the type's name first.
bool IsInterrupt(const std::exception& error) { return absl::StartsWith(error.what(), "KeyboardInterrupt"); }

void RaiseInterruptLater() {
  static auto* const interrupt = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "PyErr_SetInterrupt"));
  if (interrupt != nullptr) interrupt();
}

}  // namespace

void CallMeta(const c10::OperatorHandle& handle, torch::jit::Stack* stack) {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const torch::jit::Stack arguments = *stack;
  bool interrupted = false;
  const auto pass_on = absl::MakeCleanup([&] {
    if (interrupted) RaiseInterruptLater();
  });
  while (true) {
    try {
      return handle.callBoxed(stack);
    } catch (const std::exception& error) {
      if (!IsInterrupt(error)) throw;
    }
    interrupted = true;
    *stack = arguments;
  }
}

}  // namespace torch_lazy::lazy
