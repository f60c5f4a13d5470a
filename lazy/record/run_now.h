// SPDX-License-Identifier: Apache-2.0
// Running one call by ATen at once, on lazy tensors.
#pragma once

#include <ATen/core/stack.h>

#include "lazy/calls/call.h"
#include "lazy/ops/op.h"
#include "lazy/trace/trie.h"

namespace torch_lazy::lazy {

// Runs a call on lazy tensors at once: pending work on its operands first, then ATen on aliases of their memory. Leaves
// lazy results on the stack. `learn`: returns the geometry of the results if the same call may be recorded from now on,
// else null.
std::shared_ptr<const CallShape> RunNow(const Op& op, torch::jit::Stack* stack, const char* reason, bool learn);

}  // namespace torch_lazy::lazy
