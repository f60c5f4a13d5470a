// SPDX-License-Identifier: Apache-2.0
// C++ text of functions of doubles, which have the names of those of floats.
#pragma once

#include "absl/types/span.h"
#include "codegen/kernels/named_function.h"

namespace torch_lazy::codegen {

// Each uses only earlier ones, and functions of floats.
absl::Span<const NamedFunction> DoubleFunctions();

}  // namespace torch_lazy::codegen
