// SPDX-License-Identifier: Apache-2.0
#include "lazy/run/run_on_aliases.h"

#include <c10/core/DispatchKeySet.h>

#include "base/faults.h"

namespace torch_lazy::lazy {

RunsEager::RunsEager(const Op& op)
    : no_autograd_(c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset) {
  TORCH_CHECK(!base::MustFail(), op.name, ": a fault that was asked for");
}

void RunOnAliases(const Op& op, torch::jit::Stack* stack, bool plain) {
  const RunsEager scope(op);
  // A boxed kernel drops its arguments before it boxes its results: where these are a tuple of references to arguments,
  // somebody else has to own the arguments.
  torch::jit::Stack owned;
  if (op.writes && op.return_alias.size() > 1) owned = *stack;
  if (op.runner != nullptr) {
    op.runner(stack);
  } else if (plain) {
    op.handle.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  } else {
    op.handle.callBoxed(stack);
  }
}

}  // namespace torch_lazy::lazy
