// SPDX-License-Identifier: Apache-2.0
// Long reductions with few results, in two steps.
#pragma once

#include "codegen/compile.h"

namespace torch_lazy::codegen {

// A kernel's range is its results, so a sum of all elements would run on one thread. It becomes a
// sum along the inner dims, with a result for each place of the outer ones, and a sum of these.
ir::Graph SplitReductions(const ir::Graph& graph, const CompileOptions& options);

}  // namespace torch_lazy::codegen
