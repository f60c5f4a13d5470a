// SPDX-License-Identifier: Apache-2.0
// Activation functions and their gradients.
//
// Operands have one float dtype, f32 or f64 (rows cast 16-bit floats before and round after).
// Numbers such as a slope are values of rank 0 and the same dtype. Formulas have ATen's order of
// operations and its fused multiply-adds, measured on AVX-512: without a transcendental function
// they equal eager bit for bit.
#pragma once

#include "ir/builder.h"

namespace torch_lazy::ir::decompose {

Value Relu(Builder& b, Value x);  // NaN stays
Value ThresholdBackward(Builder& b, Value grad, Value x, Value threshold);
Value Clamp(Builder& b, Value x, Value min, Value max);  // kNoValue: no bound; NaN stays
Value HardtanhBackward(Builder& b, Value grad, Value x, Value min, Value max);
Value LeakyRelu(Builder& b, Value x, Value slope);
Value LeakyReluBackward(Builder& b, Value grad, Value x, Value slope);

Value Sigmoid(Builder& b, Value x);
Value SigmoidBackward(Builder& b, Value grad, Value y);  // of the result y
Value TanhBackward(Builder& b, Value grad, Value y);     // of the result y
Value LogSigmoid(Builder& b, Value x);
Value LogSigmoidBackward(Builder& b, Value grad, Value x);
Value Silu(Builder& b, Value x);
Value SiluBackward(Builder& b, Value grad, Value x);

enum class GeluForm { kErf, kTanh };
Value Gelu(Builder& b, Value x, GeluForm form);
Value GeluBackward(Builder& b, Value grad, Value x, GeluForm form);

Value Elu(Builder& b, Value x, Value alpha, Value scale, Value input_scale);
// `is_result`: `x` is the result of Elu instead of its operand.
Value EluBackward(Builder& b, Value grad, Value alpha, Value scale, Value input_scale, bool is_result, Value x);
Value Softplus(Builder& b, Value x, Value beta, Value threshold);
Value SoftplusBackward(Builder& b, Value grad, Value x, Value beta, Value threshold);
Value Mish(Builder& b, Value x);
Value MishBackward(Builder& b, Value grad, Value x);
Value Hardswish(Builder& b, Value x);
Value HardswishBackward(Builder& b, Value grad, Value x);
Value Hardsigmoid(Builder& b, Value x);
Value HardsigmoidBackward(Builder& b, Value grad, Value x);

}  // namespace torch_lazy::ir::decompose
