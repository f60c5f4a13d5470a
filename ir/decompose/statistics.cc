// SPDX-License-Identifier: Apache-2.0
#include "ir/decompose/statistics.h"

#include "ir/decompose/expression.h"

namespace torch_lazy::ir::decompose {

MeanAndVariance VarianceAndMean(Builder& b, Value input, const Ints& dims, Value correction, bool keepdim) {
  const Expression x(b, input);
  const Expression mean = Mean(x, dims, /*keepdim=*/true);
  const Expression squares = Sum(Square(x - mean), dims, keepdim);
  Dims extents;
  for (int64_t dim : dims) extents.push_back(x.dims()[dim]);
  const Expression count(b, b.Count(extents, x.dtype()));
  const Expression variance = squares / Max(count - Expression(b, correction), 0.0);
  return {b.Reshape(mean, variance.dims()), variance};
}

Value Std(Builder& b, Value x, const Ints& dims, Value correction, bool keepdim) {
  return b.Unary(Op::kSqrt, VarianceAndMean(b, x, dims, correction, keepdim).variance);
}

}  // namespace torch_lazy::ir::decompose
