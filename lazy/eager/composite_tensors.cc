// SPDX-License-Identifier: Apache-2.0
#include "lazy/eager/composite_tensors.h"

#include <ATen/NestedTensorImpl.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/native/SparseTensorUtils.h>

namespace torch_lazy::lazy {

at::Tensor MakeOfMembers(const at::Tensor& tensor, at::Device device, MemberMap map) {
  if (tensor.is_nested()) {
    const at::native::NestedTensorImpl& source = *at::native::get_nested_tensor_impl(tensor);
    return at::detail::make_tensor<at::native::NestedTensorImpl>(map(source.get_unsafe_storage_as_tensor()),
                                                                 source.get_nested_sizes(), source.get_nested_strides(),
                                                                 source.get_storage_offsets());
  }
  const at::Layout layout = tensor.layout();
  const c10::DispatchKeySet keys(c10::computeDispatchKey(tensor.scalar_type(), layout, device));
  const at::Tensor made = layout == at::kSparse
                              ? at::detail::make_tensor<at::SparseTensorImpl>(keys, tensor.dtype())
                              : at::detail::make_tensor<at::SparseCsrTensorImpl>(keys, device, layout, tensor.dtype());
  SetMembers(made, tensor, map);
  return made;
}

void SetMembers(const at::Tensor& to, const at::Tensor& from, MemberMap map) {
  if (from.is_nested()) return;
  if (from.layout() == at::kSparse) {
    const at::SparseTensorImpl& source = *at::sparse::get_sparse_impl(from);
    at::SparseTensorImpl& target = *at::sparse::get_sparse_impl(to);
    target.raw_resize_(source.sparse_dim(), source.dense_dim(), source.sizes());
    target.set_indices_and_values_unsafe(map(source.indices()), map(source.values()));
    target.set_coalesced(source.coalesced());
  } else {
    const at::SparseCsrTensorImpl& source = *at::sparse_csr::get_sparse_csr_impl(from);
    at::sparse_csr::get_sparse_csr_impl(to)->set_member_tensors(
        map(source.compressed_indices()), map(source.plain_indices()), map(source.values()), source.sizes());
  }
}

}  // namespace torch_lazy::lazy
