// SPDX-License-Identifier: Apache-2.0
// What a graph tells of a number: its range, and whether 16 bits hold it.
#pragma once

#include "ir/graph.h"

namespace torch_lazy::codegen {

// The op's result is one of its operands, but for the sign.
bool ChoosesOnly(ir::Op op);

// Is the number, of any float type, always one that the 16-bit type has? As a ReLU's is, of what
// has been rounded.
bool IsExactIn(ir::DType dtype, const ir::Graph& graph, ir::Value v);

// x - max(x), and what is made of squares and negative numbers. NaN counts.
bool IsNonPositive(const ir::Graph& graph, ir::Value v);

// exp(x - max(x)), along whatever dims.
bool IsTermOfSoftmax(const ir::Graph& graph, const ir::Node& node);

}  // namespace torch_lazy::codegen
