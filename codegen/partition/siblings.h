// SPDX-License-Identifier: Apache-2.0
// Values computed beside others that are made of the same, though neither needs the other.
#pragma once

#include "codegen/partition/partition_state.h"

namespace torch_lazy::codegen {

// A group that reads what the node reads, at the same places, can compute it at little cost: the sums of a gradient and
// of its product with something, say. False if there is none.
bool JoinSibling(PartitionState* state, ir::Value v);

// A group that reads what is summed up, or what that is made of, row by row makes the sums as well; else a new one.
void PlaceShareSum(PartitionState* state, ir::Value v);

}  // namespace torch_lazy::codegen
