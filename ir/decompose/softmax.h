// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and logsumexp, with their gradients.
//
// Operands are f32 or f64. A value of rank 0 has the one dim 0.
#pragma once

#include "ir/builder.h"

namespace torch_lazy::ir::decompose {

Value Softmax(Builder& b, Value x, int dim);
Value SoftmaxBackward(Builder& b, Value grad, Value y, int dim);  // of the result y
Value LogSoftmax(Builder& b, Value x, int dim);
Value LogSoftmaxBackward(Builder& b, Value grad, Value y, int dim);  // of the result y
Value LogSumExp(Builder& b, Value x, const Ints& dims, bool keepdim);

}  // namespace torch_lazy::ir::decompose
