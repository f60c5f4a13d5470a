// SPDX-License-Identifier: Apache-2.0
// The runs of a plan by one thread on one set of addresses, a model's say, and the CUDA graph of these.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

#include "lazy/cuda/graphs.h"
#include "lazy/eager/lanes.h"
#include "lazy/host/run_thread.h"
#include "lazy/run/bound_plan.h"
#include "lazy/trace/trace.h"
#include "lazy/variants/captured_plan.h"
#include "lazy/variants/cuda_graph_choice.h"
#include "lazy/variants/cuda_graph_memory.h"
#include "lazy/variants/kept_cuda_graphs.h"

namespace torch_lazy::lazy {

// Of the program's thread that it is made for: runs for that one alone may ask and run it; others may make it drop its
// CUDA graph.
class CudaGraphTurn : public CudaGraphOwner {
 public:
  // As CudaGraphMemory.
  CudaGraphTurn(const BoundPlan& plan, const CudaGraphs& graphs, std::atomic<uint64_t>* newest);
  ~CudaGraphTurn() override;

  bool IsThisThreads() const { return thread_ == ProgramThread(); }
  const CudaGraphMemory& memory() const { return memory_; }

  enum class Outcome {
    kReplayed,
    kRan,     // by launches
    kLaunch,  // let the plan run it
    kNever,   // the same from now on: no run of the plan can be captured
  };
  // `now`: that of kept_cuda_graphs.h. `is_shared`: several threads run the plan.
  Outcome Run(Trace* trace, int64_t now, bool is_shared);
  // True if that would be a replay.
  bool WouldReplay(Trace* trace, bool is_shared) const;
  // The plan did, and that took so many seconds, the question included.
  void AddLaunched(double seconds);

  // Something else runs in its place: lets go of the CUDA graph, unless it is running. The next run may capture anew.
  void LetGo();
  bool TryDrop() override;
  // It has been unused for long: the same, and the next run may not.
  void Retire();

 private:
  Outcome TryRun(Trace* trace, int64_t now, bool is_shared);
  bool TryReplay(Trace* trace, int64_t now, bool is_new);
  bool TryLaunch(Trace* trace);
  bool TryCapture(Trace* trace, int64_t now, bool is_shared);
  bool MayCapture(Trace* trace, int64_t now);
  bool Capture(Trace* trace, bool is_shared);
  bool WantsLane(bool is_shared) const { return is_shared && memory_.WritesResultsAlone() && !captured_.draws(); }
  bool MovesToLane(bool is_shared) const {
    return captured_.is_there() && captured_.lane() == kMainStream && WantsLane(is_shared);
  }
  bool WasLaunchedHere() const { return launcher_ == std::this_thread::get_id(); }
  bool IsTooEarly();
  bool MayNoLongerBeTooEarly() const;
  void LeaveRoom();
  void Drop();
  void DropAll();
  bool Refuse(const char* why);  // false
  bool RefusePlan(const char* why);

  const BoundPlan& plan_;
  const std::thread::id thread_ = ProgramThread();  // whose results lie in the homes
  mutable std::mutex mutex_;                        // over what follows, for a whole run
  CudaGraphMemory memory_;
  CapturedPlan captured_;
  CudaGraphChoice choice_;
  std::thread::id launcher_;  // the thread that ran it by launches the last time; only that one captures it
  bool was_captured_ = false;
  bool is_kept_ = false;  // KeptCudaGraphs knows of it
  bool repeats_ = false;  // there was a CUDA graph in the run before, or would have been
  int postponed_ = 0;     // times
  int64_t others_ = 0;    // CUDA graphs that there were when it was postponed the last time
  int awaited_ = 0;       // runs for which trials of products kept it from being captured
  int fitted_ = 0;        // replays since it was captured, or did not fit
  int moves_ = 0;         // how often addresses changed after a capture that had not paid
  bool refused_ = false, refused_plan_ = false;
  int64_t stream_ = 0;  // of the last replay
};

}  // namespace torch_lazy::lazy
