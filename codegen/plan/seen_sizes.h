// SPDX-License-Identifier: Apache-2.0
// Sizes seen first, used to weigh costs and never for correctness.
#pragma once

#include "absl/types/span.h"
#include "codegen/plan/polynomial.h"
#include "ir/type.h"

namespace torch_lazy::codegen {

double SeenSize(const Monomial& size, absl::Span<const int64_t> seen_extents);
double SeenBytes(const ir::Type& type, absl::Span<const int64_t> seen_extents);

}  // namespace torch_lazy::codegen
