// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace torch_lazy::lazy {

// Runs an operator's Meta kernel, as eager's code below autograd would be. Many are written in Python, where an
// interrupt is raised: it is the program's, not the call's. So the kernel runs again, and Python is told to raise it
// once the program's own code goes on.
void CallMeta(const c10::OperatorHandle& handle, torch::jit::Stack* stack);

}  // namespace torch_lazy::lazy
