// SPDX-License-Identifier: Apache-2.0
// C++ text of the functions that kernels call.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "codegen/kernels/named_function.h"

namespace torch_lazy::codegen {

// The definitions that `code` needs, of functions in an order in which each uses only earlier ones.
// `guarded`: each once in a file of several kernels; without, a kernel's stand in a namespace of its
// own.
std::string FunctionsFor(absl::Span<const NamedFunction> functions, const std::string& code, bool guarded);

// Those of floats, then those of doubles, then those of integers.
absl::Span<const NamedFunction> MathFunctions();
std::string MathFunctionsFor(const std::string& code);

}  // namespace torch_lazy::codegen
