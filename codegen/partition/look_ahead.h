// SPDX-License-Identifier: Apache-2.0
// What partitioning, which walks from the outputs, needs to know of a node's inputs.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace torch_lazy::codegen {

struct LookAhead {
  std::vector<bool> is_operand;             // of a call or a product, perhaps as a view: it lies in memory
  std::vector<int> single_ops;              // of a pointwise single number: the ops it takes; else 0
  std::vector<int> place_ops;               // of what follows from an element's place and from numbers: likewise
  std::vector<ir::Value> reduction_behind;  // the last reduction that a node was derived from by pointwise ops
  std::vector<bool> is_vector;              // multiplied by each row of a matrix, and the products summed up along it
  std::vector<bool> replaces_shared;        // takes the place of a parameter that several nodes read, perhaps as a view
};

LookAhead MakeLookAhead(const ir::Graph& graph);

}  // namespace torch_lazy::codegen
