// SPDX-License-Identifier: Apache-2.0
// Sizes seen first, used to weigh costs and never for correctness.
#pragma once

#include "codegen/plan/compile_options.h"
#include "codegen/plan/polynomial.h"
#include "ir/type.h"

namespace torch_lazy::codegen {

double SeenSize(const Monomial& size, const CompileOptions& options);
double SeenBytes(const ir::Type& type, const CompileOptions& options);

}  // namespace torch_lazy::codegen
