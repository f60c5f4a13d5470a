// SPDX-License-Identifier: Apache-2.0
// What a row kernel fetches before it is needed.
//
// Only the first walk along a row meets memory, and the last one writes it; the walks between work
// in the cache. So the walk that folds with the most arithmetic asks for the next row's numbers and
// for the places that a later walk stores to: memory works while the arithmetic does.
#pragma once

#include <vector>

#include "codegen/kernels/body.h"
#include "codegen/kernels/loops.h"
#include "codegen/kernels/row_stages.h"

namespace torch_lazy::codegen {

struct RowPrefetch {
  int stage = -1;           // whose walk asks; -1: none does
  std::vector<int> loads;   // addresses, one row ahead
  std::vector<int> stores;  // addresses in the same row
};

RowPrefetch MakeRowPrefetch(const ir::Graph& graph, const Body& body, const Loops& loops, const RowStages& rows);

}  // namespace torch_lazy::codegen
