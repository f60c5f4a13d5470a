// SPDX-License-Identifier: Apache-2.0
// What each walk along a row computes.
//
// Stage k runs when k reductions in a row have been folded: it folds those that become known next,
// and stores what is known by then. Numbers that several stages need are computed anew in each, but
// those that take several ops and loads, or a costly op, are kept in scratch memory.
#pragma once

#include <vector>

#include "codegen/kernels/body.h"

namespace torch_lazy::codegen {

struct RowStage {
  std::vector<int> reductions;  // expressions folded here
  std::vector<Store> stores;    // along the row
  std::vector<int> numbers;     // expressions of the inner loop, in order; some come from scratch memory
  std::vector<int> kept;        // those of them that are computed and put there
};

struct RowStages {
  std::vector<RowStage> stages;
  std::vector<int> scratch;  // expressions kept: one number each per element of the row
};

// Which numbers of several stages are kept: those that are costly to compute anew, or all that are
// loaded, too.
enum class Keep : uint8_t { kNothing, kCostly, kLoads };

RowStages MakeRowStages(const ir::Graph& graph, const Body& body, Keep keep = Keep::kCostly);

// True for a store that adds up along a share of the rows.
inline bool IsShareSum(const Body& body, const Store& store) {
  return body.expressions[store.expression].kind == Expression::Kind::kShareSum;
}

// Is the store's place different along the row? A number of the row as a whole may be stored all
// along it, too.
bool StoresAlongRow(const Body& body, const Store& store);

}  // namespace torch_lazy::codegen
