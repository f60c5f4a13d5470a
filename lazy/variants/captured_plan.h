// SPDX-License-Identifier: Apache-2.0
// A bound plan captured as a CUDA graph: at fixed addresses, which a CudaGraphMemory knows, and by one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "lazy/cuda/graphs.h"
#include "lazy/cuda/philox.h"
#include "lazy/host/ledger.h"
#include "lazy/run/bound_plan.h"
#include "lazy/run/plan_memory.h"
#include "lazy/trace/trace.h"
#include "lazy/variants/cuda_graph_memory.h"

namespace torch_lazy::lazy {

// Where CUDA graphs are emulated, a replay runs the plan's steps on the buffers of the capture.
class CapturedPlan {
 public:
  CapturedPlan(const BoundPlan& plan, const CudaGraphs& graphs) : plan_(plan), graphs_(graphs) {}
  ~CapturedPlan() { Drop(); }
  CapturedPlan(const CapturedPlan&) = delete;
  CapturedPlan& operator=(const CapturedPlan&) = delete;

  bool is_emulated() const { return &graphs_ == &kEmulatedCudaGraphs; }
  bool is_there() const { return graph_ != nullptr; }
  // Whose CUDA graphs it shares memory with (lanes.h).
  int lane() const { return lane_; }
  // Of the trace of NoteNumbers().
  bool draws() const { return !draws_.empty(); }

  // Notes the trace's numbers, for a capture. Returns why there can be none, or null.
  const char* NoteNumbers(const Trace& trace);
  // Captures a run on the trace, which it does not run, for replays on a lane. Returns why that has failed, or nothing.
  std::string Capture(Trace* trace, CudaGraphMemory* memory, int lane);

  // --- where it is there ---
  // True if the numbers of ATen's calls are those of the capture, and if random numbers are drawn as there.
  bool HasNumbersOf(const Trace& trace) const;
  bool DrawsLike(const Trace& trace) const;
  // Before a replay: hands over the trace's numbers. Throws; nothing of the trace has been written then.
  void Prepare(const Trace& trace);
  // Before a replay on its lane: until the last one on a stream of the program's is done.
  void WaitForOtherStreams() const;
  void Replay(Trace* trace, CudaGraphMemory* memory);
  void Drop();

 private:
  std::string CaptureSteps(Trace* trace, PlanMemory* memory);
  void EmulateCapture(const CudaGraphMemory& of, PlanMemory* memory);
  void EmulateReplay(Trace* trace, CudaGraphMemory* of);
  void ReplayOnGpu(const Trace& trace);

  const BoundPlan& plan_;
  const CudaGraphs& graphs_;
  void* graph_ = nullptr;
  int lane_ = 0;
  std::unique_ptr<backends::LaunchRecord> record_;
  std::vector<c10::IValue> numbers_of_calls_;
  std::vector<PhiloxDraw> draws_;
  std::vector<c10::Storage> emulated_;  // what the buffers are
  Savings savings_;                     // by what was chosen for its products and convolutions
};

}  // namespace torch_lazy::lazy
