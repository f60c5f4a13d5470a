// SPDX-License-Identifier: Apache-2.0
// How a tensor lies on its storage.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/util/DimVector.h>

namespace torch_lazy::lazy {

struct Geometry {
  at::ScalarType dtype = at::kFloat;
  bool conj = false;
  bool neg = false;
  c10::DimVector sizes;
  c10::DimVector strides;
  int64_t offset = 0;  // elements

  friend bool operator==(const Geometry& a, const Geometry& b) {
    return a.dtype == b.dtype && a.conj == b.conj && a.neg == b.neg && a.offset == b.offset && a.sizes == b.sizes &&
           a.strides == b.strides;
  }
};

Geometry GeometryOf(const at::TensorBase& tensor);
Geometry GeometryOf(const c10::TensorImpl& tensor);

// "Float[2, 3]"; with strides, "Float[2, 3] of strides [3, 1] from 0".
std::string TextOfGeometry(const Geometry& geometry, bool with_strides);

// A tensor of the eager device, of this geometry on `content`.
at::Tensor Alias(const c10::Storage& content, const Geometry& geometry);
at::Tensor Alias(const c10::Storage& content, at::ScalarType dtype, at::IntArrayRef sizes, at::IntArrayRef strides,
                 int64_t offset);

// A tensor of the host, of this geometry on `content`, which is the host's memory whatever the eager device.
at::Tensor HostTensor(const c10::Storage& content, const Geometry& geometry);

// A tensor of this geometry without memory.
at::Tensor MetaTensor(const Geometry& geometry);

// Bytes a storage must have for this geometry. Raises eager's error if there are too many to count.
size_t SizeBytes(const Geometry& geometry);

// Whether tensors on one storage may touch the same bytes: from the first element to the last, what lies between
// included.
bool Overlap(const Geometry& one, const Geometry& other);

}  // namespace torch_lazy::lazy
