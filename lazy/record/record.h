// SPDX-License-Identifier: Apache-2.0
// One recording step: describe the call, find or grow its node, make its results.
#pragma once

#include <ATen/core/stack.h>

#include "lazy/ops/op.h"

namespace torch_lazy::lazy {

// Runs the call on the stack for device lazy: records it, or runs it at once. This is the boxed kernel of every
// operator.
void Call(const Op& op, torch::jit::Stack* stack);

}  // namespace torch_lazy::lazy
