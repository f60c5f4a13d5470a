// SPDX-License-Identifier: Apache-2.0
// A graph made anew, node by node: how passes rewrite.
#pragma once

#include "absl/functional/function_ref.h"
#include "ir/builder.h"

namespace torch_lazy::ir {

// Calls rewrite(b, node) for each node in order, with inputs that are values of `b`. It gives the
// value to use in the node's place, for which it may append to `b`, or kNoValue to keep the node as
// it is. What this leaves without a reader stays, for dce.
Graph Rebuild(const Graph& graph, absl::FunctionRef<Value(Builder&, const Node&)> rewrite);

}  // namespace torch_lazy::ir
