// SPDX-License-Identifier: Apache-2.0
// The passes over graphs: each a pure function in a file of its own.
//
// All keep parameters, scalars and outputs in number and order, and calls one by one.
#pragma once

#include "ir/graph.h"

namespace torch_lazy::ir {

// A chain of views becomes one where it can, a view that changes nothing none, and a view of one
// broadcast number a broadcast of that number.
Graph ComposeViews(const Graph& graph);

// Work on permuted operands is done before they are permuted.
Graph HoistPermutes(const Graph& graph);

// Elementwise work on broadcast operands is done before they are broadcast.
Graph HoistExpands(const Graph& graph);

// Elementwise nodes on constants become constants.
Graph FoldConstants(const Graph& graph);

// Rules of algebra that hold bit for bit.
Graph SimplifyAlgebra(const Graph& graph);

// Equal nodes become one. Calls stay: they may draw random numbers.
Graph EliminateCommonSubexpressions(const Graph& graph);

// Nodes that no output and no call without results needs go.
Graph EliminateDeadCode(const Graph& graph);

}  // namespace torch_lazy::ir
