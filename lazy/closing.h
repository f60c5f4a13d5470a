// SPDX-License-Identifier: Apache-2.0
// When a trace is cut although nobody waits for a value.
#pragma once

#include "lazy/trace.h"

namespace torch_lazy::lazy {

// The reason to cut the trace after its newest call, or null.
const char* MustCut(const Trace& trace);

}  // namespace torch_lazy::lazy
