// SPDX-License-Identifier: Apache-2.0
// Which convolutions of a trace are packed: those whose weights stay and, on a GPU, that are faster with what follows
// them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lazy/libraries/cudnn_convolution.h"
#include "lazy/lower/lowered_trace.h"
#include "lazy/lower/packed_convolution.h"
#include "lazy/trace/call_sequence.h"

namespace torch_lazy::lazy {

// Slots whose contents stay while a model is in evaluation.
struct ConstantSlots {
  std::vector<int32_t> params;  // what weights and biases of convolutions that can be packed are, or are copied from
                                // (by autocast), and what batch norm takes, unless the trace writes them; in order
  std::vector<int32_t> copies;  // of these; in order
};

// Empty if there is no such convolution.
ConstantSlots FindConstantSlots(const CallSequence& calls, const Trace& trace);

// The convolutions that cuDNN could end with ReLU, each form once: to be timed before it is asked to. None for the
// host.
std::vector<FusedForm> FindFusedForms(const CallSequence& calls, const Trace& trace, const ConstantSlots& constants);

// A lowered trace, with packed convolutions that have taken in what they can.
struct FoldedTrace {
  std::unique_ptr<LoweredTrace> lowered;  // but for the graph
  std::vector<bool> constant_params;
  ir::Graph graph;
  absl::flat_hash_map<int64_t, PackedConvolution::Form> forms;  // of those, by call
};

// Nothing if some value has a dtype that graphs do not know.
std::optional<FoldedTrace> FoldBest(const CallSequence& calls, const Trace& trace, const ConstantSlots& constants);

}  // namespace torch_lazy::lazy
