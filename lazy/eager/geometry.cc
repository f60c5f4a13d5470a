// SPDX-License-Identifier: Apache-2.0
#include "lazy/eager/geometry.h"

#include <algorithm>

#include <c10/core/Allocator.h>
#include <c10/core/TensorImpl.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lazy/eager/on_host.h"

namespace torch_lazy::lazy {
namespace {

at::Tensor On(c10::DispatchKey device, const c10::Storage& content, at::ScalarType dtype, at::IntArrayRef sizes,
              at::IntArrayRef strides, int64_t offset) {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(content), c10::DispatchKeySet(device),
                                                               c10::scalarTypeToTypeMeta(dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return tensor;
}

at::Tensor WithBits(at::Tensor tensor, const Geometry& geometry) {
  c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
  if (geometry.conj) impl->_set_conj(true);
  if (geometry.neg) impl->_set_neg(true);
  return tensor;
}

}  // namespace

Geometry GeometryOf(const at::TensorBase& tensor) { return GeometryOf(*tensor.unsafeGetTensorImpl()); }

Geometry GeometryOf(const c10::TensorImpl& tensor) {
  Geometry geometry;
  geometry.dtype = c10::typeMetaToScalarType(tensor.dtype());
  geometry.conj = tensor.is_conj();
  geometry.neg = tensor.is_neg();
  geometry.sizes = tensor.sizes();
  geometry.strides = tensor.strides();
  geometry.offset = tensor.storage_offset();
  return geometry;
}

std::string TextOfGeometry(const Geometry& geometry, bool with_strides) {
  std::string text = absl::StrCat(at::toString(geometry.dtype), "[", absl::StrJoin(geometry.sizes, ", "), "]");
  if (with_strides)
    absl::StrAppend(&text, " of strides [", absl::StrJoin(geometry.strides, ", "), "] from ", geometry.offset);
  return text;
}

at::Tensor Alias(const c10::Storage& content, at::ScalarType dtype, at::IntArrayRef sizes, at::IntArrayRef strides,
                 int64_t offset) {
  return On(IsOnHost() ? c10::DispatchKey::CPU : c10::DispatchKey::CUDA, content, dtype, sizes, strides, offset);
}

at::Tensor Alias(const c10::Storage& content, const Geometry& geometry) {
  return WithBits(Alias(content, geometry.dtype, geometry.sizes, geometry.strides, geometry.offset), geometry);
}

at::Tensor HostTensor(const c10::Storage& content, const Geometry& geometry) {
  return WithBits(On(c10::DispatchKey::CPU, content, geometry.dtype, geometry.sizes, geometry.strides, geometry.offset),
                  geometry);
}

at::Tensor MetaTensor(const Geometry& geometry) {
  c10::Storage storage(c10::Storage::use_byte_size_t(), SizeBytes(geometry),
                       c10::DataPtr(nullptr, c10::Device(c10::kMeta)), c10::GetAllocator(c10::kMeta),
                       /*resizable=*/true);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::Meta), c10::scalarTypeToTypeMeta(geometry.dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(geometry.sizes, geometry.strides, geometry.offset);
  return tensor;
}

size_t SizeBytes(const Geometry& geometry) {
  if (std::find(geometry.sizes.begin(), geometry.sizes.end(), 0) != geometry.sizes.end()) return 0;
  int64_t last = geometry.offset, step = 0, size_bytes = 0;
  bool overflows = false;
  for (size_t d = 0; d < geometry.sizes.size(); ++d) {
    overflows |= __builtin_mul_overflow(geometry.sizes[d] - 1, geometry.strides[d], &step);
    overflows |= __builtin_add_overflow(last, step, &last);
  }
  overflows |= __builtin_add_overflow(last, 1, &last);
  overflows |= __builtin_mul_overflow(last, static_cast<int64_t>(c10::elementSize(geometry.dtype)), &size_bytes);
  TORCH_CHECK(!overflows, "Storage size calculation overflowed with sizes=", geometry.sizes);
  return static_cast<size_t>(size_bytes);
}

bool Overlap(const Geometry& one, const Geometry& other) {
  const auto first_byte = [](const Geometry& g) { return static_cast<size_t>(g.offset) * c10::elementSize(g.dtype); };
  return first_byte(one) < SizeBytes(other) && first_byte(other) < SizeBytes(one);
}

}  // namespace torch_lazy::lazy
