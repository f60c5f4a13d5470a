// SPDX-License-Identifier: Apache-2.0
// The graph of a trace whose parameters stay: in two, what follows from them alone, and the rest.
//
// Convolutions take their packed form. What is done to their results by channel (a bias, batch norm in evaluation)
// becomes a part of weight and bias, and what is added to them (a residual) the place they add to. On a GPU they end
// with ReLU, and only those do so that are faster then; the others stay calls. The first graph gives these weights and
// biases, once; the second runs each time.
#pragma once

#include <memory>
#include <vector>

#include "lazy/libraries/choose_convolutions.h"
#include "lazy/lower/lowered_trace.h"
#include "lazy/trace/call_sequence.h"

namespace torch_lazy::lazy {

struct FrozenTrace {
  LoweredTrace constants;  // outputs: of each convolution that is like no earlier one, weight and, if it has one, bias.
                           // Holds for the numbers of the trace alone
  LoweredTrace rest;
  std::vector<PackedConvolution> convolutions;  // that the rest calls; without their weights
};

// Null if some value has a dtype that graphs do not know, or nothing would be gained.
std::unique_ptr<FrozenTrace> Freeze(const CallSequence& calls, const Trace& trace, const ConstantSlots& constants);

}  // namespace torch_lazy::lazy
