// SPDX-License-Identifier: Apache-2.0
// Option `compare`: each compiled trace is also run by ATen, and what differs is reported.
#pragma once

#include "lazy/lower/lowered_trace.h"
#include "lazy/trace/call_sequence.h"
#include "lazy/variants/variant.h"

namespace torch_lazy::lazy {

// Runs the trace this way, and the interpreter on a copy of its memory. Prints a line for each output that differs
// by more than the tolerances of torch.testing. Its results stay.
bool RunAndCompare(const CallSequence& calls, const LoweredTrace& lowered, Runnable* way, Trace* trace);

}  // namespace torch_lazy::lazy
