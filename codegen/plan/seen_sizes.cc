// SPDX-License-Identifier: Apache-2.0
#include "codegen/plan/seen_sizes.h"

namespace torch_lazy::codegen {

double SeenSize(const Monomial& size, const CompileOptions& options) {
  constexpr double kUnknown = 64;
  double number = static_cast<double>(size.coefficient);
  for (const ir::Extent factor : size.factors) {
    if (factor.is_constant()) {
      number *= static_cast<double>(factor.constant());
    } else if (factor.symbol() < static_cast<int64_t>(options.seen_extents.size())) {
      number *= static_cast<double>(options.seen_extents[factor.symbol()]);
    } else {
      number *= kUnknown;
    }
  }
  return number;
}

double SeenBytes(const ir::Type& type, const CompileOptions& options) {
  return static_cast<double>(ir::SizeBytes(type.dtype)) * SeenSize(ProductOf(type.dims), options);
}

}  // namespace torch_lazy::codegen
