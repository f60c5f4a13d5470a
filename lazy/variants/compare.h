// SPDX-License-Identifier: Apache-2.0
// Option `compare`: each compiled trace is also run by ATen, and what differs is reported.
#pragma once

#include "lazy/variants/ready_plan.h"

namespace torch_lazy::lazy {

// Runs the plan on the trace, and the interpreter on a copy of its memory. Prints a line for each output that differs
// by more than the tolerances of torch.testing. The plan's results stay.
bool RunAndCompare(const CallSequence& calls, const LoweredTrace& lowered, const ReadyPlan& plan, Trace* trace);

}  // namespace torch_lazy::lazy
