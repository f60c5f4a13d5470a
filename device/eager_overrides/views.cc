// SPDX-License-Identifier: Apache-2.0
// Views: other sizes and strides over the same storage. Nothing is recorded, and no data is touched.
//
// PyTorch's own functions for the CPU do just that, and keep the conjugate and negative bits. All other views are made
// out of these.
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>

#include "device/eager_overrides/kernels.h"

namespace torch_lazy::device {
namespace {

// Whether `.data =`, `set_data` and Module::to may put `from` into the TensorImpl of `self`, a Parameter for instance.
// All state of a lazy tensor is behind its storage, so they may, from and to the CPU as well.
bool HasCompatibleShallowCopyType(const at::Tensor& self, const at::Tensor& from) {
  return self.layout() == c10::kStrided && from.layout() == c10::kStrided;
}

}  // namespace

void RegisterViews(torch::Library& aten) {
  aten.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  aten.impl("view", TORCH_FN(at::native::view));
  aten.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  aten.impl("unfold", TORCH_FN(at::native::unfold));
  aten.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  aten.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
}

void RegisterShallowCopies(torch::Library& aten) {
  aten.impl("_has_compatible_shallow_copy_type", TORCH_FN(HasCompatibleShallowCopyType));
}

}  // namespace torch_lazy::device
