// SPDX-License-Identifier: Apache-2.0
// Cutting traces: what is live becomes an output, the entry runs, storages get their contents.
#pragma once

#include <memory>

#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {

// Why a trace is cut before a call that must run at once for its shape to be learned. It will be known the next time,
// so no cut comes at this place again, and nothing is compiled for it. Nor does what begins there come again.
inline constexpr char kUnknownShape[] = "unknown shape";

// Runs the trace, or waits for the thread that does. The device lock is not held.
void CutAndRun(const std::shared_ptr<Trace>& trace, const char* reason);

// The same, but leaves it to a thread of ours where that is worth it.
void CutAndGoOn(const std::shared_ptr<Trace>& trace, const char* reason);

// Runs what the calling thread has recorded: because the host waits for a value, for another reason, or so that a
// thread of ours may do it.
void CutThreadTraceForHost(const char* reason);
void CutThreadTrace(const char* reason);
void CutThreadTraceAndGoOn(const char* reason);

}  // namespace torch_lazy::lazy
