// SPDX-License-Identifier: Apache-2.0
// What is done to the result of a packed convolution becomes a part of it.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace torch_lazy::lazy {

// conv(x, w, b) * s + t, where s and t are numbers per channel that follow from constant parameters, is conv(x, w * s, b * s + t);
// conv(x, w, b) + y adds to y's memory. Only where nobody else reads the result.
ir::Graph FoldIntoConvolutions(const ir::Graph& graph, const std::vector<bool>& constant_params);

}  // namespace torch_lazy::lazy
