// SPDX-License-Identifier: Apache-2.0
// Which traces run on a thread of ours while the next one is recorded: Note [Runs ahead] in lazy/host/run_thread.h.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "lazy/eager/current_device.h"
#include "lazy/eager/eager_device.h"
#include "lazy/host/run_thread.h"
#include "lazy/trace/trace.h"
#include "lazy/variants/entry.h"

namespace torch_lazy::lazy {

// True if the trace may be left to the thread. `waited`: somebody waits for it. The trace is to be cut, and its entry
// is this.
bool MayRunAhead(const Trace& trace, const Entry& entry, bool waited);

// The calling thread has taken a run back (run_thread.h), since a team spins. On the host, its own ends, and its next
// traces that somebody waits for run in the program (stay.h), with the team that ATen's calls make.
void StayInProgram();

// Leaves the trace to the thread, which calls `run` with it, as RunThread::Runs says. False if the thread is busy or
// there is none: nothing was done.
using Stream = std::optional<c10::Stream>;  // of a GPU, the one that takes the work of who has recorded the trace
using RunsTrace = std::function<bool(const std::shared_ptr<Trace>&, const Stream&, RunThread::Where)>;
bool RunAhead(const std::shared_ptr<Trace>& trace, RunsTrace run);

// What `run` does is done on the trace's device, in that stream's order, for as long as it lives.
class OnThreadAhead {
 public:
  OnThreadAhead(const Trace& trace, const Stream& stream);

 private:
  const OnDevice device_;
  std::optional<OnStream> stream_;
};

// Until no run of the calling thread's moves results of CUDA graphs (lazy/cuda/graph_result.h). To be called before a
// content is used outside a trace. The device lock is not held.
void WaitForMoves();

}  // namespace torch_lazy::lazy
