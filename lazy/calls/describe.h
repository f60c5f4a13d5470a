// SPDX-License-Identifier: Apache-2.0
// A boxed call as its description.
#pragma once

#include <ATen/core/stack.h>

#include "lazy/calls/call.h"

namespace torch_lazy::lazy {

// Fills `call` from the arguments on the stack (the last op.args.size() values). Throws as eager does when devices are
// mixed.
void Describe(const Op& op, const torch::jit::Stack& stack, CallDescription* call);

}  // namespace torch_lazy::lazy
