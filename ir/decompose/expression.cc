// SPDX-License-Identifier: Apache-2.0
#include "ir/decompose/expression.h"

#include <utility>

namespace torch_lazy::ir::decompose {
namespace {

// The dims to which both broadcast. Where neither extent is 1 the first counts, and the Builder
// checks the other.
Dims Common(const Dims& a, const Dims& b) {
  if (a.size() < b.size()) return Common(b, a);
  Dims common = a;
  const size_t lead = a.size() - b.size();
  for (size_t k = 0; k < b.size(); ++k) {
    if (common[lead + k].is_one()) common[lead + k] = b[k];
  }
  return common;
}

Expression To(const Dims& dims, const Expression& x) { return {x.builder(), x.builder().BroadcastTo(x, dims)}; }

}  // namespace

Expression Unary(Op op, const Expression& x) { return {x.builder(), x.builder().Unary(op, x)}; }

Expression Binary(Op op, const Expression& x, const Expression& y) {
  const Dims dims = Common(x.dims(), y.dims());
  const Expression wide_x = To(dims, x), wide_y = To(dims, y);
  return {x.builder(), x.builder().Binary(op, wide_x, wide_y)};
}

Expression Where(const Expression& condition, const Expression& x, const Expression& y) {
  const Dims dims = Common(Common(condition.dims(), x.dims()), y.dims());
  const Expression c = To(dims, condition), wide_x = To(dims, x), wide_y = To(dims, y);
  return {x.builder(), x.builder().Where(c, wide_x, wide_y)};
}

Expression Fma(const Expression& x, const Expression& y, const Expression& z) {
  const Dims dims = Common(Common(x.dims(), y.dims()), z.dims());
  const Expression wide_x = To(dims, x), wide_y = To(dims, y), wide_z = To(dims, z);
  return {x.builder(), x.builder().Fma(wide_x, wide_y, wide_z)};
}

Expression Sum(const Expression& x, Ints dims, bool keepdim) {
  return {x.builder(), x.builder().Sum(x, std::move(dims), keepdim)};
}

Expression Mean(const Expression& x, Ints dims, bool keepdim) {
  return {x.builder(), x.builder().Mean(x, std::move(dims), keepdim)};
}

}  // namespace torch_lazy::ir::decompose
