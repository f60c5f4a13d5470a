// SPDX-License-Identifier: Apache-2.0
// The graph of a trace whose parameters stay: in two, what follows from them alone, and the rest.
//
// Convolutions take their packed form. What is done to their results by channel (a bias, batch norm in evaluation) becomes a
// part of weight and bias, and what is added to them (a residual) the place they add to. On a GPU they end with ReLU, and only
// those do so that are faster then; the others stay calls. The first graph gives these weights and biases, once; the second runs
// each time.
#pragma once

#include <memory>
#include <vector>

#include "lazy/cudnn_convolution.h"
#include "lazy/lower.h"
#include "lazy/packed_convolution.h"

namespace torch_lazy::lazy {

struct FrozenTrace {
  LoweredTrace constants;  // outputs: of each convolution that is like no earlier one, weight and, if it has one, bias. Holds for
                           // the numbers of the trace alone
  LoweredTrace rest;
};

// Slots whose contents stay while a model is in evaluation.
struct ConstantSlots {
  std::vector<int32_t> params;   // what weights and biases of convolutions that can be packed are, or are copied from (by autocast),
                                 // and what batch norm takes, unless the trace writes them; in order
  std::vector<int32_t> copies;   // of these; in order
};

// Empty if there is no such convolution.
ConstantSlots FindConstantSlots(const Entry& entry, const Trace& trace);

// The convolutions that cuDNN could end with ReLU, each form once: to be timed before it is asked to. None for the host.
std::vector<FusedForm> FindFusedForms(const Entry& entry, const Trace& trace, const ConstantSlots& constants);

// Null if some value has a dtype that graphs do not know, or nothing would be gained.
std::unique_ptr<FrozenTrace> Freeze(const Entry& entry, const Trace& trace, const ConstantSlots& constants);

}  // namespace torch_lazy::lazy
