// SPDX-License-Identifier: Apache-2.0
// The views that programs take at each step, in one call each. PyTorch's make them out of others, by a dispatch each: t
// of transpose and as_strided, a part of split of narrow, slice and as_strided. What is unusual (names, errors) is left
// to them.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/ops/select_native.h>
#include <ATen/ops/slice_native.h>
#include <ATen/ops/split_native.h>
#include <ATen/ops/t_native.h>
#include <ATen/ops/transpose_native.h>
#include <c10/util/DimVector.h>

#include "device/eager_overrides/kernels.h"
#include "torch_compat/names.h"

namespace torch_lazy::device {
namespace {

// As as_strided's, which keeps the conjugate and negative bits. Sizes and strides lie within the storage as those of
// `self`.
at::Tensor ViewOf(const at::Tensor& self, at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset) {
  auto view = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(self.storage()),
                                                       self.key_set(), self.dtype());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return view;
}

// False where the storage has been made smaller since, by hand.
bool LiesInStorage(const at::Tensor& self) {
  if (self.numel() == 0) return true;
  int64_t last = self.storage_offset();
  for (int64_t d = 0; d < self.dim(); ++d) last += (self.sizes()[d] - 1) * self.strides()[d];
  return static_cast<size_t>(last + 1) * self.itemsize() <= self.storage().nbytes();
}

// Whether there is such a dimension, no names have to follow, and there is nothing to refuse.
bool IsCommon(const at::Tensor& self, int64_t dim) {
  return dim >= -self.dim() && dim < self.dim() && !torch_compat::HasNames(self) && LiesInStorage(self);
}

int64_t FromFront(const at::Tensor& self, int64_t dim) { return dim < 0 ? dim + self.dim() : dim; }

at::Tensor Transpose(const at::Tensor& self, int64_t dim0, int64_t dim1) {
  if (!IsCommon(self, dim0) || !IsCommon(self, dim1)) return at::native::transpose(self, dim0, dim1);
  c10::DimVector sizes(self.sizes()), strides(self.strides());
  std::swap(sizes[FromFront(self, dim0)], sizes[FromFront(self, dim1)]);
  std::swap(strides[FromFront(self, dim0)], strides[FromFront(self, dim1)]);
  return ViewOf(self, sizes, strides, self.storage_offset());
}

at::Tensor T(const at::Tensor& self) { return self.dim() == 2 ? Transpose(self, 0, 1) : at::native::t(self); }

at::Tensor Part(const at::Tensor& self, int64_t dim, int64_t start, int64_t size, int64_t step = 1) {
  c10::DimVector sizes(self.sizes()), strides(self.strides());
  const int64_t offset = self.storage_offset() + start * strides[dim];
  sizes[dim] = size;
  strides[dim] *= step;
  return ViewOf(self, sizes, strides, offset);
}

at::Tensor Slice(const at::Tensor& self, int64_t dim, std::optional<int64_t> first, std::optional<int64_t> last,
                 int64_t step) {
  if (!IsCommon(self, dim) || step <= 0) return at::native::slice(self, dim, first, last, step);
  dim = FromFront(self, dim);
  const int64_t size = self.size(dim);
  const auto within = [size](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
  const int64_t start = within(first.value_or(0));
  const int64_t end = std::max(start, within(last.value_or(size)));
  return Part(self, dim, start, (end - start + step - 1) / step, step);
}

at::Tensor Select(const at::Tensor& self, int64_t dim, int64_t index) {
  if (!IsCommon(self, dim) || index < -self.size(dim) || index >= self.size(dim))
    return at::native::select_symint(self, dim, index);
  dim = FromFront(self, dim);
  c10::DimVector sizes(self.sizes()), strides(self.strides());
  const int64_t offset = self.storage_offset() + (index < 0 ? index + self.size(dim) : index) * strides[dim];
  sizes.erase(sizes.begin() + dim);
  strides.erase(strides.begin() + dim);
  return ViewOf(self, sizes, strides, offset);
}

std::vector<at::Tensor> Split(const at::Tensor& self, int64_t split_size, int64_t dim) {
  if (!IsCommon(self, dim) || split_size <= 0 || self.size(dim) == 0) return at::native::split(self, split_size, dim);
  dim = FromFront(self, dim);
  const int64_t size = self.size(dim);
  std::vector<at::Tensor> parts;
  parts.reserve((size - 1) / split_size + 1);
  for (int64_t start = 0; start < size; start += split_size) {
    parts.push_back(Part(self, dim, start, std::min(split_size, size - start)));
    if (size - start <= split_size) break;
  }
  return parts;
}

}  // namespace

void RegisterCommonViews(torch::Library& aten) {
  aten.impl("t", TORCH_FN(T));
  aten.impl("transpose.int", TORCH_FN(Transpose));
  aten.impl("slice.Tensor", TORCH_FN(Slice));
  aten.impl("select.int", TORCH_FN(Select));
  aten.impl("split.Tensor", TORCH_FN(Split));
}

}  // namespace torch_lazy::device
