// SPDX-License-Identifier: Apache-2.0
// What clamp does with a bound that is NaN.
#pragma once

#include <torch/headeronly/version.h>

namespace torch_lazy::torch_compat {

// Whether everything becomes NaN where it is the only bound. With two bounds, and in clamp_min and clamp_max, it does
// in every version.
inline constexpr bool kOneBoundMayBeNan = TORCH_VERSION_MINOR >= 12;

}  // namespace torch_lazy::torch_compat
