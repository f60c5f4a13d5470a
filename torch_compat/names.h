// SPDX-License-Identifier: Apache-2.0
// The names of a tensor's dimensions, which PyTorch has until 2.12.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/headeronly/version.h>

#if TORCH_VERSION_MINOR < 13
#include <ATen/NamedTensorUtils.h>
#endif

namespace torch_lazy::torch_compat {

#if TORCH_VERSION_MINOR < 13
inline bool HasNames(const at::Tensor& tensor) { return tensor.key_set().has(c10::DispatchKey::Named); }
inline void CopyNames(const at::Tensor& to, const at::Tensor& from) { at::namedinference::propagate_names(to, from); }
#else
inline bool HasNames(const at::Tensor&) { return false; }
inline void CopyNames(const at::Tensor&, const at::Tensor&) {}
#endif

}  // namespace torch_lazy::torch_compat
