// SPDX-License-Identifier: Apache-2.0
// C++ text of functions of floats, of conversions, and of maxima and minima.
#pragma once

#include "absl/types/span.h"
#include "codegen/kernels/named_function.h"

namespace torch_lazy::codegen {

// Each uses only earlier ones.
absl::Span<const NamedFunction> FloatFunctions();

}  // namespace torch_lazy::codegen
