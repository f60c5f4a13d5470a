// SPDX-License-Identifier: Apache-2.0
// C++ text of the functions that kernels call.
#pragma once

#include <string>

namespace torch_lazy::codegen {

// The definitions that `code` needs, those they need themselves first. Each is guarded, so that
// several kernels can stand in one file.
std::string MathFunctionsFor(const std::string& code);

}  // namespace torch_lazy::codegen
