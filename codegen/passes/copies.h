// SPDX-License-Identifier: Apache-2.0
// Copies that a plan cannot do without.
#pragma once

#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "ir/graph.h"

namespace torch_lazy::codegen {

// A graph in which some nodes are copies: casts to the same dtype that read their input from
// memory.
struct GraphWithCopies {
  ir::Graph graph;
  absl::flat_hash_set<ir::Value> copies;
};

struct CopyPlaces {
  std::vector<std::pair<ir::Value, int>> operands;  // a node and which of its operands
  std::vector<int> outputs;
  bool empty() const { return operands.empty() && outputs.empty(); }
};

// Where no two outputs may share bytes: an output that is a parameter, but for one written back to
// itself, or that lies in the same buffer as an earlier output.
CopyPlaces SharedOutputs(const ir::Graph& graph);

GraphWithCopies InsertCopies(const GraphWithCopies& graph, const CopyPlaces& places);

}  // namespace torch_lazy::codegen
