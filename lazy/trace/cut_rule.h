// SPDX-License-Identifier: Apache-2.0
// When a trace is cut though nobody waits: a step has ended, or it is long.
#pragma once

#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {

// The reason to cut the trace after its newest call, or null; sets `ends_step`. `grown`: the call was new to the trie.
const char* MustCut(Trace* trace, bool grown);

// How many pure steps the next trace of the thread should hold, after one that was cut at a step's end and ran while
// the program goes on.
int PureStepsAfter(const Trace& trace, bool shares_launches);

// True if the trace is not cut for its length when so many more calls come, whose results have so many bytes.
bool HasRoomFor(const Trace& trace, size_t calls, int64_t bytes);

}  // namespace torch_lazy::lazy
