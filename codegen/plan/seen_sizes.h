// SPDX-License-Identifier: Apache-2.0
// Sizes seen first, used to weigh costs and never for correctness.
#pragma once

#include "codegen/compile.h"
#include "codegen/plan/polynomial.h"

namespace torch_lazy::codegen {

inline double TypicalSize(const Monomial& size, const CompileOptions& options) {
  constexpr double kUnknown = 64;
  double number = static_cast<double>(size.coefficient);
  for (const ir::Extent factor : size.factors) {
    if (factor.is_constant()) {
      number *= static_cast<double>(factor.constant());
    } else if (factor.symbol() < static_cast<int64_t>(options.typical_extents.size())) {
      number *= static_cast<double>(options.typical_extents[factor.symbol()]);
    } else {
      number *= kUnknown;
    }
  }
  return number;
}

}  // namespace torch_lazy::codegen
