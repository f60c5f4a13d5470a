// SPDX-License-Identifier: Apache-2.0
#include "device/eager_overrides/like_on_cuda.h"

#include "lazy/eager/eager_device.h"
#include "lazy/eager/geometry.h"

namespace torch_lazy::device {

at::Tensor LikeOnCuda(const at::Tensor& tensor) {
  c10::Storage nothing(c10::Storage::use_byte_size_t(), 0, c10::DataPtr(nullptr, lazy::EagerDevice()), nullptr,
                       /*resizable=*/false);
  const bool has_numbers = !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
  lazy::Geometry geometry;
  geometry.dtype = tensor.scalar_type();
  if (has_numbers) geometry = lazy::GeometryOf(tensor);
  at::Tensor like = lazy::Alias(nothing, geometry);
  if (!has_numbers)
    like.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sym_sizes(), tensor.sym_strides(),
                                                      tensor.sym_storage_offset());
  if (tensor.requires_grad()) like.unsafeGetTensorImpl()->set_requires_grad(true);
  return like;
}

}  // namespace torch_lazy::device
