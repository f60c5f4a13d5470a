// SPDX-License-Identifier: Apache-2.0
// The result's geometry of the plainest calls: elementwise on tensors of one type, f32 or f64, and real numbers.
//
// TensorIterator answers, as it does inside every such kernel of eager's: broadcasting, strides, and errors. The Meta
// kernels would as well, but from Python most of them are Python functions, a hundred times as slow.
#pragma once

#include <memory>

#include <ATen/core/stack.h>

#include "lazy/calls/call.h"
#include "lazy/trace/trie.h"

namespace torch_lazy::lazy {

// Elementwise on f32 and f64 and their numbers, which every kernel of these has: no need to see it run before its Meta
// kernel is believed.
bool IsPlainArithmetic(const Op& op, const CallDescription& call);

// Null for a call that is not as plain as that. Throws the user's errors as eager does.
std::shared_ptr<const CallShape> ElementwiseShape(const Op& op, const CallDescription& call,
                                                  const torch::jit::Stack& stack);

// What TensorIterator makes of the operands: sizes and strides of the result, or the first operand if it is written.
at::Tensor IteratorOutput(const Op& op, const CallDescription& call, bool in_place);

// Gives an elementwise result the strides that the CPU's would have. Where a dimension has one element, those of Meta
// kernels from Python differ.
void CorrectStrides(const Op& op, const CallDescription& call, CallShape* shape);

}  // namespace torch_lazy::lazy
