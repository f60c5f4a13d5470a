// SPDX-License-Identifier: Apache-2.0
#include "ir/decompose/interpolate.h"

#include "ir/decompose/expression.h"

namespace torch_lazy::ir::decompose {

// From the nearer end, so that weights 0 and 1 give the ends exactly.
Value Lerp(Builder& b, Value start, Value end, Value weight) {
  const Expression x(b, start), y(b, end), w(b, weight);
  const Expression d = y - x;
  return Where(Abs(w) < 0.5, Fma(w, d, x), Fma(-d, 1.0 - w, y));
}

Value Addcmul(Builder& b, Value x, Value a, Value c, Value value) {
  return Fma(Expression(b, value) * Expression(b, a), {b, c}, {b, x});
}

Value Addcdiv(Builder& b, Value x, Value a, Value c, Value value) {
  return Expression(b, x) + Expression(b, value) * Expression(b, a) / Expression(b, c);
}

}  // namespace torch_lazy::ir::decompose
