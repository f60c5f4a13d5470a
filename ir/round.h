// SPDX-License-Identifier: Apache-2.0
// Rounding host numbers to element types.
#pragma once

#include <cstdint>

#include "ir/type.h"

namespace torch_lazy::ir {

double RoundTo(DType dtype,
               double value);                // float types: to nearest, ties to even; f64 -> 16 bits by way of f32
int64_t WrapTo(DType dtype, int64_t value);  // integer types: modulo 2^bits; bool: 0 or 1
int64_t FloatToInt(DType dtype,
                   double value);  // C's truncation; NaN and what does not fit as x86 gives it

// 16-bit floats as they lie in memory; `value` has been rounded.
uint16_t HalfBits(DType dtype, double value);
double FromHalfBits(DType dtype, uint16_t bits);

}  // namespace torch_lazy::ir
