// SPDX-License-Identifier: Apache-2.0
// A group stores a value: one that there is, or a new one.
#pragma once

#include "codegen/partition/partition_state.h"

namespace torch_lazy::codegen {

// The group computes the value and stores it; whoever else reads it comes after.
void StoreIn(PartitionState* state, ir::Value v, int group, int map);

void StoreInNewGroup(PartitionState* state, ir::Value v);

// A group makes the rows of the put and stores them into its first operand: one that does the same with as many rows at
// the same places, or a new one.
void StorePut(PartitionState* state, ir::Value put);

}  // namespace torch_lazy::codegen
