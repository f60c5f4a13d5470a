// SPDX-License-Identifier: Apache-2.0
#include "device/shapes/in_place.h"

#include <ATen/ExpandUtils.h>

namespace torch_lazy::device::shapes {
namespace {

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

}  // namespace

bool Fill(ShapeCall& call) { return call.ReturnWritten(0); }

// (self, from, ...)
bool Copy(ShapeCall& call) {
  return at::is_expandable_to(call.Tensor(1).sizes(), call.Tensor(0).sizes()) && call.ReturnWritten(0);
}

bool ScatterInPlace(ShapeCall& call) { return Scatter(call) && call.ReturnWritten(0); }
bool ScatterAnew(ShapeCall& call) { return Scatter(call) && call.ReturnLike(call.Tensor(0)); }

// (self, dim, index, source, ...)
bool IndexedInPlace(ShapeCall& call) {
  const at::Tensor &self = call.Tensor(0), &index = call.Tensor(2), &source = call.Tensor(3);
  const int64_t dim = call.Dim(1, self.dim());
  if (dim < 0 || index.dim() > 1 || source.dim() != self.dim()) return false;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (source.size(d) != (d == dim ? index.numel() : self.size(d))) return false;
  }
  return call.ReturnWritten(0);
}

}  // namespace torch_lazy::device::shapes
