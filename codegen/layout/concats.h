// SPDX-License-Identifier: Apache-2.0
// Values that are computed straight into their place in a concatenation.
//
// A concatenation is no work of its own: the group that computes an operand stores it into the
// slice of the whole that it is. Whoever reads the whole runs after all of them.
#pragma once

#include <functional>
#include <vector>

#include "codegen/layout/copies.h"
#include "codegen/layout/factors.h"
#include "codegen/layout/index_map.h"

namespace torch_lazy::codegen {

struct Concats {
  struct Place {
    ir::Value whole = ir::kNoValue;  // kNoValue: it has memory of its own
    Polynomial start;                // its first index in the whole, along the dim of the concat
  };
  std::vector<Place> place_of;  // of each value
  CopyPlaces missing_copies;    // operands that have to lie elsewhere, too

  bool IsPlaced(ir::Value v) const { return place_of[v].whole != ir::kNoValue; }
};

// An operand that is somebody's whole buffer (a parameter, what a call reads or makes, an output),
// that is reshaped, or that is an operand twice, is copied into its slice.
Concats PlaceOperands(const ir::Graph& graph, const Factors& factors);

// The place of the element of `value` at `map` in the memory where it lies.
Affine AddressIn(const ir::Graph& graph, const Concats& concats, ir::Value value, IndexMap map, const Factors& factors);

// The values that make up a concat, through concats that are parts of it; any other value is itself.
void ForEachPart(const ir::Graph& graph, ir::Value value, const std::function<void(ir::Value)>& run);

}  // namespace torch_lazy::codegen
