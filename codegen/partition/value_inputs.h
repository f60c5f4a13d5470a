// SPDX-License-Identifier: Apache-2.0
// What a value is made of, and whether to make it again costs less than to load it.
#pragma once

#include <vector>

#include "codegen/partition/look_ahead.h"
#include "codegen/plan/target.h"
#include "ir/graph.h"

namespace torch_lazy::codegen {

inline constexpr size_t kMostReaders = 3;    // groups that compute a node again
inline constexpr size_t kMostSearched = 16;  // values looked at for what a group reads

// One op on at most one input of full size, or a few on single numbers: so many groups would
// rather compute the value than load it.
bool IsCheap(const ir::Graph& graph, const LookAhead& look, Target target, ir::Value v, size_t num_groups);

// What pointwise ops make the value of, as far as these cost little; none if they are many.
std::vector<ir::Value> CheapInputsOf(const ir::Graph& graph, const LookAhead& look, ir::Value v);

}  // namespace torch_lazy::codegen
