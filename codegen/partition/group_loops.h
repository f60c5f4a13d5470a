// SPDX-License-Identifier: Apache-2.0
// Questions about a value and the loops of a group.
#pragma once

#include <optional>

#include "codegen/partition/group.h"

namespace torch_lazy::codegen {

// At this map, do the group's loops meet each element of a value of these dims exactly once? Then
// the group can store it. A value that no inner loop changes is met once per iteration of the outer
// ones.
bool MeetsEachOnce(const Group& group, const IndexMap& map, const ir::Dims& dims, const Factors& factors);

// Would a value at this map be computed again and again for some loop? Not what has no index at
// all, and not what only the outer loops change, if there are inner ones: these are computed before
// the (inner) loop.
bool IsRepeated(const Group& group, const IndexMap& map);

// Do the blocks that make shares of one row all read a value at this map? Then none may store it.
bool IsReadByShares(const Group& group, const IndexMap& map);

// If a group of the node's own would have just these loops, or, being no reduction, the outer ones of a
// group that reduces: the map at which this one would have it as a root.
std::optional<IndexMap> MapOverSameLoops(const ir::Graph& graph, const Factors& factors, ir::Value value,
                                         const Group& group);

}  // namespace torch_lazy::codegen
