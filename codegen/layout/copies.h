// SPDX-License-Identifier: Apache-2.0
// Copies that a plan cannot do without.
#pragma once

#include <utility>
#include <vector>

#include "ir/graph.h"

namespace torch_lazy::codegen {

// A copy is a cast to the dtype that its input has. It reads its input from memory.
bool IsCopy(const ir::Graph& graph, ir::Value value);

struct CopyPlaces {
  std::vector<std::pair<ir::Value, int>> operands;  // a node and which of its operands
  std::vector<int> outputs;
  bool empty() const { return operands.empty() && outputs.empty(); }
};

// Where no two outputs may share bytes: an output that is a parameter, but for one written back to
// itself, or that lies in the same buffer as an earlier output.
CopyPlaces SharedOutputs(const ir::Graph& graph);

ir::Graph InsertCopies(const ir::Graph& graph, const CopyPlaces& places);

}  // namespace torch_lazy::codegen
