// SPDX-License-Identifier: Apache-2.0
// Tensors that are made of dense ones: sparse tensors of indices and values, nested tensors of one buffer.
//
// Such a tensor of the device is PyTorch's own, over lazy members. Calls on it run at once, by ATen, on such a tensor
// of the CPU over aliases of the members.
#pragma once

#include <ATen/core/Tensor.h>

#include "absl/functional/function_ref.h"
#include "torch_compat/names.h"

namespace torch_lazy::lazy {

// Plain strided memory: neither made of members nor quantized.
inline bool IsDense(const at::Tensor& tensor) {
  constexpr c10::DispatchKeySet kOthers({c10::DispatchKey::NestedTensor, c10::DispatchKey::Quantized});
  return tensor.layout() == at::kStrided && !tensor.key_set().has_any(kOthers);
}

// Names of dimensions, which ATen's kernels alone carry from tensor to tensor: calls on such tensors run at once.
inline bool IsNamed(const at::Tensor& tensor) { return torch_compat::HasNames(tensor); }

using MemberMap = absl::FunctionRef<at::Tensor(const at::Tensor&)>;

// A tensor of the layout and sizes of `tensor` on another device; each member is what `map` makes of that of `tensor`.
at::Tensor MakeOfMembers(const at::Tensor& tensor, at::Device device, MemberMap map);

// Gives `to`, of the same layout, the sizes of `from` and members made of those of `from`. A nested tensor keeps both.
void SetMembers(const at::Tensor& to, const at::Tensor& from, MemberMap map);

}  // namespace torch_lazy::lazy
