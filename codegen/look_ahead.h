// SPDX-License-Identifier: Apache-2.0
// What partitioning, which walks from the outputs, needs to know of a node's inputs.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace torch_lazy::codegen {

struct LookAhead {
  std::vector<bool> is_operand;  // of a call or a product, perhaps as a view: it lies in memory
  std::vector<int> single_ops;  // of a pointwise single number: the ops it takes; else 0
  std::vector<int> place_ops;   // of what follows from an element's place and from numbers: likewise
  std::vector<ir::Value>
      reduction_behind;  // the last reduction that a node was derived from by pointwise ops
};

LookAhead MakeLookAhead(const ir::Graph& graph);

// The values that are read at the same places as the node's inputs: these, and theirs through
// pointwise ops, some of them. Not numbers that are broadcast: to share one saves nothing.
std::vector<ir::Value> ReadOneForOne(const ir::Graph& graph, ir::Value v);

}  // namespace torch_lazy::codegen
