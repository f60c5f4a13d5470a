// SPDX-License-Identifier: Apache-2.0
// lerp, addcmul and addcdiv, as ATen computes them on AVX-512 processors.
//
// Operands have one float dtype; `value` is one too, or has rank 0.
#pragma once

#include "ir/builder.h"

namespace torch_lazy::ir::decompose {

Value Lerp(Builder& b, Value start, Value end, Value weight);
Value Addcmul(Builder& b, Value x, Value a, Value c,
              Value value);                                         // x + value * a * c, fused at the end
Value Addcdiv(Builder& b, Value x, Value a, Value c, Value value);  // x + value * a / c, not fused

}  // namespace torch_lazy::ir::decompose
