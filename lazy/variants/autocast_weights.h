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

struct Carry {
  LoweredTrace first;  // from these to the carried contents
  LoweredTrace step;   // from the carried contents and all parameters to the outputs and the next carried contents
};

// The same graph, as two that share their carried contents.
Carry CarryOf(const ir::Graph& graph, const LoweredTrace& lowered);

}  // namespace torch_lazy::lazy
