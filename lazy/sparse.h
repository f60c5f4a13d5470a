// SPDX-License-Identifier: Apache-2.0
// Sparse tensors: tensors of indices and of values, each of them dense.
//
// A sparse tensor of the device is PyTorch's own, over lazy members. Calls on it run at once, by ATen, on a sparse tensor of
// the CPU over aliases of the members.
#pragma once

#include <ATen/core/Tensor.h>

#include "absl/functional/function_ref.h"

namespace torch_lazy::lazy {

using MemberMap = absl::FunctionRef<at::Tensor(const at::Tensor&)>;

// A tensor of the layout and sizes of `sparse` on another device; each member is what `map` makes of that of `sparse`.
at::Tensor MakeSparse(const at::Tensor& sparse, at::Device device, MemberMap map);

// Gives `to`, of the same layout, the sizes of `from` and members made of those of `from`.
void SetMembers(const at::Tensor& to, const at::Tensor& from, MemberMap map);

}  // namespace torch_lazy::lazy
