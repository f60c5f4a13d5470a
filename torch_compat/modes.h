// SPDX-License-Identifier: Apache-2.0
// Modes of autograd that are new in a version, and decide what a backward pass does.
#pragma once

#include <c10/core/AutogradState.h>
#include <torch/headeronly/version.h>

namespace torch_lazy::torch_compat {

// From 2.13 on: whether the gradient of a leaf is given the leaf's strides.
#if TORCH_VERSION_MINOR < 13
inline bool NewModesAreEqual(const c10::AutogradState&, const c10::AutogradState&) { return true; }
#else
inline bool NewModesAreEqual(const c10::AutogradState& a, const c10::AutogradState& b) {
  return a.get_grad_layout_enforcement_enabled() == b.get_grad_layout_enforcement_enabled();
}
#endif

}  // namespace torch_lazy::torch_compat
