// SPDX-License-Identifier: Apache-2.0
// The numbers that the CPU's dropout draws: of the input's type, and from 2.15 on real ones for complex input.
#pragma once

#include <c10/core/ScalarType.h>
#include <torch/headeronly/version.h>

namespace torch_lazy::torch_compat {

inline c10::ScalarType DrawnByDropout(c10::ScalarType input) {
  return TORCH_VERSION_MINOR >= 15 ? c10::toRealValueType(input) : input;
}

}  // namespace torch_lazy::torch_compat
