// SPDX-License-Identifier: Apache-2.0
// A plan bound to the sizes of one entry, ready to run on any trace that ends there.
#pragma once

#include <memory>
#include <vector>

#include "lazy/eager/geometry.h"
#include "lazy/libraries/tuned_cuda_product.h"
#include "lazy/libraries/tuned_product.h"
#include "lazy/lower/lower.h"
#include "lazy/run/plans.h"
#include "lazy/run/step_page.h"
#include "lazy/trace/trace.h"
#include "lazy/variants/entry.h"

namespace torch_lazy::lazy {

class GraphedPlan;
class PlanMemory;

// The numbers of a run, per scalar of the graph; integers bit-cast.
std::vector<double> NumbersOf(const LoweredTrace& lowered, const Trace& trace);

class BoundPlan {
 public:
  BoundPlan(const Entry& entry, const LoweredTrace& lowered, const PlannedGraph& planned);
  ~BoundPlan();

  // Runs on the trace's slots and leaves the outputs in them. False if a call has failed: then the slots are as they
  // were. Raises what cannot be undone.
  bool Run(Trace* trace) const;

  // What lies in memory at a time, at most, parameters included.
  size_t PeakBytes() const;
  // Of its graph, if it has one that is not running; a later run captures it anew.
  void DropGraph() const;

  // True if a run costs little beside the recording, and consists of kernels and products alone. Follows from the calls
  // and the sizes, not from times, since such a plan's products have one thread wherever it runs: digits must not
  // change.
  bool runs_ahead() const { return runs_ahead_; }

  // True if all it does is launches of kernels for rows of the length seen first, which take more instances as well as
  // one, and need no memory beside their results.
  bool shares_launches() const { return shares_launches_; }

 private:
  friend class GraphedPlan;
  // The instances of a launch; their pointers stand one after the other.
  struct Launch {
    std::vector<int32_t> buffers, scalars;
    std::vector<int64_t> offset_bytes;  // per buffer
    std::vector<int64_t> extents;
    std::vector<backends::BoundInstance> instances;  // all but the pointers
  };
  struct Matmul {
    Geometry x, y, result;
    Geometry bias;                           // without dims: there is none
    TunedProduct* tuned = nullptr;           // null: ATen's own way
    TunedCudaProduct* tuned_cuda = nullptr;  // null: the same
  };
  static Matmul BindMatmul(const codegen::Step& step, absl::Span<const int64_t> symbols);
  const PackedConvolution* ConvolutionOf(const ir::Node& call) const;
  std::vector<bool> OverwrittenInputs(const ir::Node& node, absl::Span<const int64_t> symbols) const;
  void FindReadParams(absl::Span<const int64_t> symbols);
  void FindSaves();
  void FindLastReads();
  void TuneProducts();
  bool IsShort() const;
  bool LaunchesExactRowsAlone(absl::Span<const int64_t> symbols) const;
  size_t LaunchBytes() const;  // of arguments, for Backend::BeginRecord
  std::vector<double> ScalarsOfLaunches(absl::Span<const double> numbers) const;  // one after the other
  void RunStep(size_t step, Trace* trace, PlanMemory* memory) const;
  void RunLaunch(const Launch& launch, PlanMemory* memory) const;
  void RunMatmul(size_t step, PlanMemory* memory) const;
  void RunCall(size_t step, Trace* trace, PlanMemory* memory) const;
  void RunConvolution(size_t step, PlanMemory* memory) const;

  const Entry& entry_;
  const LoweredTrace& lowered_;
  const codegen::Plan& plan_;
  const ir::Graph& graph_;
  std::vector<size_t> size_bytes_;                      // per buffer
  std::vector<Launch> launches_;                        // per step
  std::vector<Matmul> matmuls_;                         // per step
  std::vector<const PackedConvolution*> convolutions_;  // per step; null: none
  std::vector<int32_t> read_params_;  // buffers, in order, of parameters that are not overwritten unread
  // Note [Failing calls]
  std::vector<std::vector<int32_t>> saves_;  // per step: parameters to copy before it, which overwrites them
  size_t failing_end_ = 0;                   // no step from here on may fail ...
  size_t undoable_end_ = 0;                  // ... and from here on, what has been written, or let go, cannot be undone
  std::vector<std::vector<int32_t>> last_reads_;  // per step: parameters that nothing writes and nothing later reads
  bool runs_ahead_ = false;
  bool shares_launches_ = false;
  std::unique_ptr<StepPage> page_;        // null without option dump
  std::unique_ptr<GraphedPlan> graphed_;  // null where there are no graphs
};

}  // namespace torch_lazy::lazy
