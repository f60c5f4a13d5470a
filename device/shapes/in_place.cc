// SPDX-License-Identifier: Apache-2.0
#include "device/shapes/in_place.h"

#include <algorithm>
#include <optional>
#include <vector>

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

// Of the elements that the indices choose; nothing if they are no numbers, or not of one shape.
std::optional<c10::DimVector> SizesChosen(const at::Tensor& self, const std::vector<at::Tensor>& indices) {
  const at::Tensor* given = nullptr;
  int64_t first = -1, last = -1;
  if (static_cast<int64_t>(indices.size()) > self.dim()) return std::nullopt;
  for (size_t d = 0; d < indices.size(); ++d) {
    const at::Tensor& index = indices[d];
    if (!index.defined()) continue;
    if (index.scalar_type() != at::kLong && index.scalar_type() != at::kInt) return std::nullopt;
    if (given != nullptr && index.sizes() != given->sizes()) return std::nullopt;
    if (given == nullptr) first = static_cast<int64_t>(d);
    given = &index;
    last = static_cast<int64_t>(d);
  }
  if (given == nullptr) return std::nullopt;
  const bool are_apart = std::any_of(indices.begin() + first, indices.begin() + last,
                                     [](const at::Tensor& index) { return !index.defined(); });
  c10::DimVector sizes;
  if (are_apart) sizes.append(given->sizes().begin(), given->sizes().end());  // in front
  for (int64_t d = 0; d < self.dim(); ++d) {
    const bool is_chosen = d < static_cast<int64_t>(indices.size()) && indices[static_cast<size_t>(d)].defined();
    if (!is_chosen) sizes.push_back(self.size(d));
    if (!are_apart && d == first) sizes.append(given->sizes().begin(), given->sizes().end());
  }
  return sizes;
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

// (self, indices, values, ...)
bool IndexPutInPlace(ShapeCall& call) {
  const std::optional<c10::DimVector> chosen = SizesChosen(call.Tensor(0), call.Tensors(1));
  return chosen && at::is_expandable_to(call.Tensor(2).sizes(), *chosen) && call.ReturnWritten(0);
}

}  // namespace torch_lazy::device::shapes
