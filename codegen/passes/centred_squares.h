// SPDX-License-Identifier: Apache-2.0
// Recognises the sum that a variance is made of.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace torch_lazy::codegen {

// What a sum of squares in f32 is of: x - mean, where the mean's sum is over the same dims.
struct Centred {
  ir::Value x, mean;
};
// Nothing if the node, a reduction whose earlier ones have become shares, is another.
std::optional<Centred> CentredSquares(const ir::Graph& graph, const ir::Node& node);

}  // namespace torch_lazy::codegen
