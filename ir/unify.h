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

// The least general graph that both are special cases of; nullopt if they differ in more than symbols.
//
// [s0, s0, s1] and [s0, s1, s1], as two steps with four experts of random sizes may leave, give [s0, s1, s2]. Two
// extents have one symbol here where they have one in both, so what a rule wants to be equal is equal.
std::optional<Graph> Generalize(const Graph& a, const Graph& b);

}  // namespace torch_lazy::ir
