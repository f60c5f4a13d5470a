// SPDX-License-Identifier: Apache-2.0
// Calls that write their first argument and return it.
#include <ATen/ExpandUtils.h>

#include "device/shapes/rules.h"

namespace torch_lazy::device {
namespace {

using lazy::ShapeCall;

bool Fill(ShapeCall& call) { return call.ReturnWritten(0); }

// (self, from, ...)
bool Copy(ShapeCall& call) {
  return at::is_expandable_to(call.Tensor(1).sizes(), call.Tensor(0).sizes()) && call.ReturnWritten(0);
}

// (self, dim, index, from or value, ...)
bool Scatter(ShapeCall& call) {
  const at::Tensor &self = call.Tensor(0), &index = call.Tensor(2);
  const int64_t dim = call.Dim(1, self.dim());
  if (dim < 0 || index.dim() != self.dim()) return false;
  const bool has_source = call.IsTensor(3) && call.Tensor(3).dim() != 0;
  if (has_source && call.Tensor(3).dim() != self.dim()) return false;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d != dim && index.size(d) > self.size(d)) return false;
    if (has_source && index.size(d) > call.Tensor(3).size(d)) return false;
  }
  return true;
}
bool ScatterInPlace(ShapeCall& call) { return Scatter(call) && call.ReturnWritten(0); }
bool ScatterAnew(ShapeCall& call) { return Scatter(call) && call.ReturnLike(call.Tensor(0)); }

constexpr ShapeRow kRows[] = {
    {"aten::copy_", Copy},
    {"aten::fill_.Scalar", Fill},
    {"aten::fill_.Tensor", Fill},
    {"aten::masked_fill_.Scalar", Copy},
    {"aten::masked_fill_.Tensor", Copy},
    {"aten::scatter.src", ScatterAnew},
    {"aten::scatter.value", ScatterAnew},
    {"aten::scatter_.src", ScatterInPlace},
    {"aten::scatter_.value", ScatterInPlace},
    {"aten::scatter_add", ScatterAnew},
    {"aten::scatter_add_", ScatterInPlace},
    {"aten::zero_", Fill},
};

}  // namespace

ShapeRows InPlaceShapes() { return kRows; }

}  // namespace torch_lazy::device
