// SPDX-License-Identifier: Apache-2.0
// A bound plan as one CUDA graph.
//
// Note [CUDA graphs]
// A plan runs by single launches until it is worth a CUDA graph (cuda_graph_choice.h) and there is room for one
// (kept_cuda_graphs.h), in a loop twice. Then a run is captured, and it and all later ones are one call. A CUDA graph
// reads and writes fixed addresses:
// - a parameter that was at one address in the last three runs (weights, an optimizer's state) is read and written
//   there, and is asked for its address at each replay. Where one has moved, the plan is captured anew. One that moved
//   right before the first capture, or often, is copied to a home that the CUDA graph keeps, and back if it is written;
//   with as many copies as steps there is no CUDA graph;
// - a result lies in a home (graph_result.h), and so does what fills a storage without memory. A replay moves what is
//   still there elsewhere, which only the thread may do that uses it: for another thread the plan is captured anew;
// - numbers, and the tables of launches of many kernels, lie in memory that the CUDA graph's kernels read;
// - random numbers are those of a seed and an offset (philox.h), which a replay sets for the whole CUDA graph.
// What cannot be captured (a call that waits, numbers among the arguments of ATen's calls that change) goes on by
// single launches.
#pragma once

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "backends/backend.h"
#include "lazy/cuda/graphs.h"
#include "lazy/cuda/philox.h"
#include "lazy/host/ledger.h"
#include "lazy/run/bound_plan.h"
#include "lazy/trace/trace.h"
#include "lazy/variants/cuda_graph_choice.h"
#include "lazy/variants/cuda_graph_memory.h"
#include "lazy/variants/kept_cuda_graphs.h"

namespace torch_lazy::lazy {

class CudaGraphPlan : public CudaGraphOwner {
 public:
  // Null where there are no CUDA graphs, or the plan is too short for one.
  static std::unique_ptr<CudaGraphPlan> For(const BoundPlan& plan);
  ~CudaGraphPlan() override;

  // True if the trace has run, as by the plan. False: let the plan run it.
  bool Run(Trace* trace);
  // It did, and that took so many seconds, the question included.
  void AddLaunched(double seconds);

  // Something else runs in the plan's place: lets go of the CUDA graph, unless it is running. The next run may capture
  // anew.
  void LetGo();
  bool TryDrop() override;

 private:
  CudaGraphPlan(const BoundPlan& plan, const CudaGraphs& graphs);
  bool Fits(Trace* trace) const;
  bool TryCapture(Trace* trace, int64_t now);
  bool IsTooEarly();
  bool MayNoLongerBeTooEarly() const;
  void LeaveRoom();
  bool Capture(Trace* trace);
  bool CaptureSteps(Trace* trace, PlanMemory* memory);
  void EmulateCapture(PlanMemory* memory);
  void EmulateReplay(Trace* trace);
  bool TryLaunch(Trace* trace);
  bool TryPrepareReplay(Trace* trace);
  void PrepareReplay(Trace* trace);
  void Replay(Trace* trace);
  void Drop();
  void DropGraph();
  void Refuse(const char* why);

  const BoundPlan& plan_;
  const CudaGraphs& graphs_;
  std::mutex mutex_;  // over what follows, for a whole run
  CudaGraphMemory memory_;
  CudaGraphChoice choice_;
  bool was_captured_ = false;
  bool is_kept_ = false;  // KeptCudaGraphs knows of it
  bool repeats_ = false;  // there was a CUDA graph in the run before, or would have been
  int postponed_ = 0;     // times
  int64_t others_ = 0;    // CUDA graphs that there were when it was postponed the last time
  int fitted_ = 0;        // replays since it was captured, or did not fit
  int moves_ = 0;         // how often addresses changed after a capture
  bool refused_ = false;
  int64_t stream_ = 0;      // of the last replay
  std::thread::id thread_;  // whose results lie in the homes
  void* graph_ = nullptr;
  std::unique_ptr<backends::LaunchRecord> record_;
  std::vector<c10::IValue> numbers_of_calls_;  // as captured
  std::vector<PhiloxDraw> draws_;              // likewise
  std::vector<c10::Storage> emulated_;         // what the buffers are, where CUDA graphs are emulated
  Savings savings_;                            // by what was chosen for its products and convolutions
};

}  // namespace torch_lazy::lazy
