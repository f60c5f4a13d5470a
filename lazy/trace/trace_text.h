// SPDX-License-Identifier: Apache-2.0
// A trace as text, for option dump.
#pragma once

#include <string>

#include "lazy/trace/call_sequence.h"
#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {

// One line a call, then the slots that are needed after the last:
//
//   1 aten::mul.Tensor(self=%0 Float[2, 3], other=%1 Float[3]) -> %2 Float[2, 3]
//   2 aten::add_.Scalar(self=%2!, other=1)
//   needed: %2
//
// A slot has its geometry where it is first named, and "!" where the call writes it. An argument that has its default
// value is left out.
std::string TextOfTrace(const CallSequence& sequence, const Trace& trace);

}  // namespace torch_lazy::lazy
