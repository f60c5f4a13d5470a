// SPDX-License-Identifier: Apache-2.0
// The graph of a step that begins by narrowing its parameters and ends by writing them, as one under autocast does: the
// narrow values become parameters of their own, and what the next step will need of them is written along with the wide
// ones.
#pragma once

#include <vector>

#include "lazy/lower/lowered_trace.h"

namespace torch_lazy::lazy {

// Slots of the parameters that the graph, which the trace was lowered to, narrows and writes; each once.
std::vector<int32_t> NarrowedSlots(const ir::Graph& graph, const LoweredTrace& lowered);

struct AutocastGraphs {
  LoweredTrace first;  // from the wide parameters to the narrow ones, which are kept
  LoweredTrace step;   // from the narrow and all wide parameters to the outputs and the next narrow ones
};

// The same graph, as two that share the contents they keep.
AutocastGraphs AutocastGraphsOf(const ir::Graph& graph, const LoweredTrace& lowered);

}  // namespace torch_lazy::lazy
