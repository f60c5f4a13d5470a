// SPDX-License-Identifier: Apache-2.0
// Means and variances.
//
// Operands are f32 or f64. Variances take two passes: the mean, then squares of differences.
#pragma once

#include "ir/builder.h"

namespace torch_lazy::ir::decompose {

struct MeanAndVariance {
  Value mean;
  Value variance;
};

// Divided by max(count - correction, 0); `correction` has rank 0 and x's dtype.
MeanAndVariance VarianceAndMean(Builder& b, Value x, const Ints& dims, Value correction, bool keepdim);
Value Std(Builder& b, Value x, const Ints& dims, Value correction, bool keepdim);

}  // namespace torch_lazy::ir::decompose
