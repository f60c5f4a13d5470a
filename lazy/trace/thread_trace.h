// SPDX-License-Identifier: Apache-2.0
// Each thread's trace, and the list of all.
#pragma once

#include <memory>
#include <vector>

#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {

// The trace of the calling thread, made if it has none. The device lock is held.
std::shared_ptr<Trace>& ThreadTrace();

// The same, to be recorded in: calls of the thread do not run at once any more.
const std::shared_ptr<Trace>& RecordingTrace();

// Whether calls of the thread may run at once now: what they give must be what a trace would have given.
bool MayRunAtOnce();

// Whether a call of the operator runs at once, if it is the trace's next: Note [Calls at once], Note [Handed over]. The
// device lock is held.
bool RunsAtOnce(const Op& op, Trace* trace);

// Whether all calls of the calling thread do. Takes the lock.
bool CallsRunAtOnce();

// A call of this operator does.
void TellAtOnce(const Op& op, Trace* trace);

// The calling thread waits for a value: its trace, null if that has no calls.
std::shared_ptr<Trace> TraceToWaitFor();

// The newest of the calling thread, null if there was none; and those of all threads.
std::shared_ptr<Trace> NewestTrace();
std::vector<std::shared_ptr<Trace>> TracesOfAllThreads();

}  // namespace torch_lazy::lazy
