// SPDX-License-Identifier: Apache-2.0
// Cuts a graph into groups of nodes that are computed together.
//
// Greedy, from the outputs to the inputs. When a node's turn comes, everything that reads it has a
// group or is a call. It joins its reader's group if all readers are in one, so that it is never
// stored; a cheap one joins each reader's group; any other is stored, and still computed inside a
// reader's group if that closes no cycle, so that this reader does not load it. A reduction joins a
// group whose loops its own fit: softmax and layer norm become one group.
//
// The rules have names (join_rules.h).
#pragma once

#include <vector>

#include "codegen/partition/partition_state.h"

namespace torch_lazy::codegen {

// `reasons`, if not null, receives the rules that decided.
Partition MakePartition(const ir::Graph& graph, const Concats& concats, const Factors& factors,
                        const CompileOptions& options, std::vector<Reason>* reasons = nullptr);

}  // namespace torch_lazy::codegen
