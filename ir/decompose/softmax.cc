// SPDX-License-Identifier: Apache-2.0
#include "ir/decompose/softmax.h"

#include <limits>

#include "ir/decompose/expression.h"

namespace torch_lazy::ir::decompose {
namespace {

Ints DimsOf(const Expression& x, int dim) { return x.rank() == 0 ? Ints{} : Ints{dim}; }

// Without NaN, which comes back where the largest number is subtracted from it.
Expression Largest(const Expression& x, const Ints& dims) {
  return {x.builder(), x.builder().Reduce(Op::kReduceMaxNumber, x, dims, /*keepdim=*/true)};
}

}  // namespace

Value Softmax(Builder& b, Value input, int dim) {
  const Expression x(b, input);
  const Ints dims = DimsOf(x, dim);
  const Expression e = Exp(x - Largest(x, dims));
  return e * Unary(Op::kRecip, Sum(e, dims, /*keepdim=*/true));  // one division a row, for half an ulp
}

Value SoftmaxBackward(Builder& b, Value grad, Value result, int dim) {
  const Expression g(b, grad), y(b, result);
  return (g - Sum(g * y, DimsOf(y, dim), /*keepdim=*/true)) * y;
}

Value LogSoftmax(Builder& b, Value input, int dim) {
  const Expression x(b, input);
  const Ints dims = DimsOf(x, dim);
  const Expression shifted = x - Largest(x, dims);
  return shifted - Log(Sum(Exp(shifted), dims, /*keepdim=*/true));
}

Value LogSoftmaxBackward(Builder& b, Value grad, Value result, int dim) {
  const Expression g(b, grad), y(b, result);
  return g - Exp(y) * Sum(g, DimsOf(y, dim), /*keepdim=*/true);
}

// An infinite maximum is not subtracted: inf - inf is NaN.
Value LogSumExp(Builder& b, Value input, const Ints& dims, bool keepdim) {
  const Expression x(b, input);
  const Expression largest = Largest(x, dims);
  const Expression infinite = Equal(Abs(largest), std::numeric_limits<double>::infinity());
  const Expression shift = Where(infinite, largest.Number(0), largest);
  const Expression log_sum = Log(Sum(Exp(x - shift), dims, keepdim));
  return log_sum + Expression(b, b.Reshape(shift, log_sum.dims()));
}

}  // namespace torch_lazy::ir::decompose
