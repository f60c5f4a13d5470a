// SPDX-License-Identifier: Apache-2.0
#include "lazy/run/run_on_aliases.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "base/faults.h"
#include "lazy/eager/memory.h"

namespace torch_lazy::lazy {

void RunOnAliases(const Op& op, torch::jit::Stack* stack) {
  TORCH_CHECK(!base::MustFail(), op.name, ": a fault that was asked for");
  PooledResults pooled;
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  // A boxed kernel drops its arguments before it boxes its results: where these are a tuple of references to arguments,
  // somebody else has to own the arguments.
  torch::jit::Stack owned;
  if (op.writes && op.return_alias.size() > 1) owned = *stack;
  if (op.runner != nullptr) {
    op.runner(stack);
  } else {
    op.handle.callBoxed(stack);
  }
}

}  // namespace torch_lazy::lazy
