// SPDX-License-Identifier: Apache-2.0
// A plan bound to the sizes of one entry, ready to run on any trace that ends there.
#pragma once

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "codegen/plan/plan.h"
#include "lazy/lower/lowered_trace.h"
#include "lazy/lower/packed_convolution.h"
#include "lazy/run/bound_launch.h"
#include "lazy/run/bound_product.h"
#include "lazy/run/param_uses.h"
#include "lazy/run/plan_memory.h"
#include "lazy/run/plans.h"
#include "lazy/run/step_page.h"
#include "lazy/trace/call_sequence.h"
#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {

class BoundPlan {
 public:
  // All must outlive the plan. `convolutions`: the packed ones that the graph calls, with their weights.
  BoundPlan(const CallSequence& calls, const LoweredTrace& lowered, const PlannedGraph& planned,
            std::vector<PackedConvolution> convolutions = {});

  // Runs on the trace's slots and leaves the outputs in them. False if a call has failed: then the slots are as they
  // were. Raises what cannot be undone.
  bool Run(Trace* trace) const;
  // The same; `prepare` may say before where buffers lie.
  bool Run(Trace* trace, absl::FunctionRef<void(PlanMemory*)> prepare) const;

  // True if later runs may try how a product is fastest.
  bool AwaitsTrials() const;

  // What lies in memory at a time, at most, parameters included.
  size_t PeakBytes() const;

  // True if runs may be left to a thread of ours (lazy/host/run_thread.h). On the CPU, if a run costs little beside the
  // recording, and consists of kernels and products alone: such a plan's products have one thread wherever it runs. On
  // a GPU, if it has steps enough. Follows from the calls and the sizes, not from times: digits must not change.
  bool runs_ahead() const { return runs_ahead_; }
  // True if only a CUDA graph of it may be left to a thread of ours: one of its calls prepares for sizes on each thread
  // anew (kPreparesByThread), or sets the generator for the moment, which the program may ask meanwhile.
  bool ahead_by_replay() const { return ahead_by_replay_; }

  // True if all it does is launches of kernels for rows of the length seen first, which take more instances as well as
  // one, and need no memory beside their results.
  bool shares_launches() const { return shares_launches_; }

  // --- for who runs its steps himself ---
  const CallSequence& calls() const { return calls_; }
  const LoweredTrace& lowered() const { return lowered_; }
  const codegen::Plan& plan() const { return plan_; }
  const ir::Graph& graph() const { return graph_; }
  const std::vector<size_t>& size_bytes() const { return size_bytes_; }  // per buffer
  const ParamUses& uses() const { return uses_; }
  bool has_page() const { return page_ != nullptr; }
  size_t LaunchBytes() const;  // of arguments, for Backend::BeginRecord
  std::vector<double> ScalarsOfLaunches(absl::Span<const double> numbers) const;  // one after the other
  void RunStep(size_t step, Trace* trace, PlanMemory* memory) const;

 private:
  const PackedConvolution* ConvolutionOf(const ir::Node& call) const;
  void TuneProducts();
  bool IsShort() const;
  bool IsWorthAThread() const;
  bool HasCall(absl::FunctionRef<bool(const TrieNode&)> is_such) const;
  bool IsAheadByReplay() const;
  bool LaunchesExactRowsAlone(absl::Span<const int64_t> symbols) const;
  void RunCall(size_t step, Trace* trace, PlanMemory* memory) const;
  void RunConvolution(size_t step, PlanMemory* memory) const;

  const CallSequence& calls_;
  const LoweredTrace& lowered_;
  const codegen::Plan& plan_;
  const ir::Graph& graph_;
  std::vector<size_t> size_bytes_;      // per buffer
  std::vector<BoundLaunch> launches_;   // per step
  std::vector<BoundProduct> products_;  // per step
  const std::vector<PackedConvolution> packed_;
  std::vector<const PackedConvolution*> convolutions_;  // per step, of these; null: none
  ParamUses uses_;
  bool is_short_ = false;
  bool runs_ahead_ = false;
  bool ahead_by_replay_ = false;
  bool shares_launches_ = false;
  std::unique_ptr<StepPage> page_;  // null without option dump
};

}  // namespace torch_lazy::lazy
