// SPDX-License-Identifier: Apache-2.0
// A part of ATen's check of sparse tensors, which it looks up by device without a call.
#include <ATen/core/Tensor.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/ops/zeros.h>

namespace at::native {

// Of ATen/native/sparse/FlattenIndicesStub.h, which packages of PyTorch lack.
DECLARE_DISPATCH(Tensor (*)(const Tensor&, IntArrayRef), flatten_indices_stub)

}  // namespace at::native

namespace torch_lazy::device {
namespace {

// indices: dimensions by elements. The place of each element in a dense row-major tensor of these sizes.
at::Tensor FlattenIndices(const at::Tensor& indices, at::IntArrayRef sizes) {
  at::Tensor flat = at::zeros({indices.size(1)}, indices.options());
  for (size_t i = 0; i < sizes.size(); ++i) flat = flat * sizes[i] + indices.select(0, static_cast<int64_t>(i));
  return flat;
}

}  // namespace
}  // namespace torch_lazy::device

namespace at::native {

REGISTER_PRIVATEUSE1_DISPATCH(flatten_indices_stub, &torch_lazy::device::FlattenIndices)

}  // namespace at::native
