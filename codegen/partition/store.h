// SPDX-License-Identifier: Apache-2.0
// A group stores a value: one that there is, or a new one.
#pragma once

#include "codegen/partition/partition_state.h"

namespace torch_lazy::codegen {

// The group computes the value and stores it; whoever else reads it comes after.
void StoreIn(PartitionState* state, ir::Value v, int group, int map);

void StoreInNewGroup(PartitionState* state, ir::Value v);

}  // namespace torch_lazy::codegen
