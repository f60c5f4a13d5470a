// SPDX-License-Identifier: Apache-2.0
// Running one call by ATen, on eager tensors.
#pragma once

#include <ATen/core/stack.h>

#include "lazy/ops/op.h"

namespace torch_lazy::lazy {

// Calls the operator on a stack of tensors of the eager device, below autograd and autocast; leaves its results on the
// stack.
void RunOnAliases(const Op& op, torch::jit::Stack* stack);

}  // namespace torch_lazy::lazy
