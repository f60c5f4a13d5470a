// SPDX-License-Identifier: Apache-2.0
// Reductions as kernels want them.
#pragma once

#include "ir/graph.h"
#include "ir/passes/pass.h"

namespace torch_lazy::codegen {

// A kernel's range is its results, so a sum of all elements would run on one thread. It becomes a
// sum along the inner dims, with a result for each place of the outer ones, and a sum of these. And
// every reduction keeps its dims, with a reshape behind it where they are not wanted, so that equal
// reductions are seen to be equal.
ir::Graph PrepareReductions(const ir::Graph& graph, ir::PassContext* context);

}  // namespace torch_lazy::codegen
