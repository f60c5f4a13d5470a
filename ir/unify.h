// SPDX-License-Identifier: Apache-2.0
// Graphs that are the same but for which sizes happen to be equal.
//
// Where a batch has as many rows as a model has heads, one symbol stands for both, and the graph
// differs from that of other batches. What is right for every number of two symbols is right for
// equal ones, so the other batches' graph serves as well.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace torch_lazy::ir {

// For each symbol of `general`, the one of `special` that stands wherever it stands, -1 if it stands
// nowhere; nullopt if the graphs differ in anything else, or if two of `special` would have to.
std::optional<std::vector<int32_t>> Unify(const Graph& general, const Graph& special);

}  // namespace torch_lazy::ir
