// SPDX-License-Identifier: Apache-2.0
// Runs a trace call by call with ATen, in place on the slots' contents.
//
// Right by construction: this is eager execution, deferred. It runs traces whose kernels are not compiled, and is the
// meaning that compiled entries are compared with.
#pragma once

#include "lazy/trace/call_sequence.h"
#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {

void Interpret(const CallSequence& calls, Trace* trace);

// Runs one call on the slots' contents.
void InterpretCall(const TrieNode& call, Trace* trace);

}  // namespace torch_lazy::lazy
