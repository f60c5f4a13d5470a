// SPDX-License-Identifier: Apache-2.0
// CUDA text of the functions that kernels call.
#pragma once

#include <string>

namespace torch_lazy::codegen::cuda {

// The definitions that `code` needs, those they need themselves first; see codegen/kernels/math_text.h.
std::string MathFunctionsFor(const std::string& code);

}  // namespace torch_lazy::codegen::cuda
