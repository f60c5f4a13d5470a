// SPDX-License-Identifier: Apache-2.0
// Many small products of matrices become few large ones.
//
// A loop over time multiplies slice after slice of one value by the same weights: the whole value is
// multiplied once, and each step takes its slice of that. Its gradient adds up a product, and a sum
// for the bias, for each step: the operands are stacked, a few steps at a time, and the stacks multiplied or summed.
#pragma once

#include "ir/graph.h"
#include "ir/passes/pass.h"

namespace torch_lazy::codegen {

ir::Graph MergeMatmuls(const ir::Graph& graph, ir::PassContext* context);

}  // namespace torch_lazy::codegen
