// SPDX-License-Identifier: Apache-2.0
#include "codegen/plan/seen_sizes.h"

namespace torch_lazy::codegen {

double SeenSize(const Monomial& size, absl::Span<const int64_t> seen_extents) {
  constexpr double kUnknown = 64;
  double number = static_cast<double>(size.coefficient);
  for (const ir::Extent factor : size.factors) {
    if (factor.is_constant()) {
      number *= static_cast<double>(factor.constant());
    } else if (factor.symbol() < static_cast<int64_t>(seen_extents.size())) {
      number *= static_cast<double>(seen_extents[factor.symbol()]);
    } else {
      number *= kUnknown;
    }
  }
  return number;
}

double SeenBytes(const ir::Type& type, absl::Span<const int64_t> seen_extents) {
  return static_cast<double>(ir::SizeBytes(type.dtype)) * SeenSize(ProductOf(type.dims), seen_extents);
}

}  // namespace torch_lazy::codegen
