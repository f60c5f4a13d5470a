// SPDX-License-Identifier: Apache-2.0
// A bound plan as it is run: by launches, or as a CUDA graph where that is worth it.
//
// A CUDA graph is no variant of its own: each plan that a variant runs may have one.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "lazy/run/bound_plan.h"
#include "lazy/variants/cuda_graph_plan.h"
#include "lazy/variants/variant.h"

namespace torch_lazy::lazy {

class ReadyPlan final : public Runnable {
 public:
  // As BoundPlan; all must outlive the plan.
  ReadyPlan(const CallSequence& calls, const LoweredTrace& lowered, const PlannedGraph& planned,
            std::vector<PackedConvolution> convolutions = {})
      : bound_(calls, lowered, planned, std::move(convolutions)), cuda_graph_(CudaGraphPlan::For(bound_)) {}

  bool Run(Trace* trace) override { return cuda_graph_ == nullptr ? bound_.Run(trace) : cuda_graph_->Run(trace); }
  // Lets go of its CUDA graphs that are not running; later runs capture them anew.
  void Release() override {
    if (cuda_graph_ != nullptr) cuda_graph_->LetGo();
  }
  size_t PeakBytes() const override { return bound_.PeakBytes(); }
  bool runs_ahead() const override { return bound_.runs_ahead(); }
  bool ahead_by_replay() const override { return bound_.ahead_by_replay(); }
  bool shares_launches() const override { return bound_.shares_launches(); }
  bool replays() const override { return cuda_graph_ != nullptr && cuda_graph_->replays(); }
  bool WouldReplay(Trace* trace) const override { return cuda_graph_ != nullptr && cuda_graph_->WouldReplay(trace); }

 private:
  const BoundPlan bound_;
  const std::unique_ptr<CudaGraphPlan> cuda_graph_;  // null where there are no CUDA graphs
};

}  // namespace torch_lazy::lazy
