// SPDX-License-Identifier: Apache-2.0
// Running one call by ATen, on eager tensors.
#pragma once

#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "lazy/eager/memory.h"
#include "lazy/ops/op.h"

namespace torch_lazy::lazy {

// While one lives, ATen's kernel of the operator may be called: below autograd and autocast, with results in pooled
// memory.
class RunsEager {
 public:
  explicit RunsEager(const Op& op);

 private:
  const PooledResults pooled_;
  const c10::impl::ExcludeDispatchKeyGuard no_autograd_;
};

// Calls the operator on a stack of tensors of the eager device, below autograd and autocast; leaves its results on the
// stack. `plain`: the CPU's own kernel is known to come next.
void RunOnAliases(const Op& op, torch::jit::Stack* stack, bool plain = false);

}  // namespace torch_lazy::lazy
