// SPDX-License-Identifier: Apache-2.0
// What a kernel costs, roughly, on one thread.
#pragma once

#include "codegen/kernels/body.h"
#include "codegen/plan/compile_options.h"

namespace torch_lazy::codegen {

struct KernelCost {
  double nanoseconds_per_iteration;
  double iterations;  // typical
};

KernelCost CostOf(const ir::Graph& graph, const Body& body, const CompileOptions& options);

}  // namespace torch_lazy::codegen
