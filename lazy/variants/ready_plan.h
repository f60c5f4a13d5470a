// SPDX-License-Identifier: Apache-2.0
// A bound plan as it is run: by launches, or as a CUDA graph where that is worth it.
#pragma once

#include <memory>

#include "lazy/run/bound_plan.h"
#include "lazy/variants/cuda_graph_plan.h"

namespace torch_lazy::lazy {

class ReadyPlan {
 public:
  // All must outlive the plan.
  ReadyPlan(const CallSequence& calls, const LoweredTrace& lowered, const PlannedGraph& planned)
      : bound_(calls, lowered, planned), cuda_graph_(CudaGraphPlan::For(bound_)) {}

  // As BoundPlan::Run.
  bool Run(Trace* trace) const;

  // Of its CUDA graph, if it has one that is not running; a later run captures it anew.
  void DropCudaGraph() const {
    if (cuda_graph_ != nullptr) cuda_graph_->LetGo();
  }
  size_t PeakBytes() const { return bound_.PeakBytes(); }
  bool runs_ahead() const { return bound_.runs_ahead(); }
  bool shares_launches() const { return bound_.shares_launches(); }

 private:
  const BoundPlan bound_;
  const std::unique_ptr<CudaGraphPlan> cuda_graph_;  // null where there are no CUDA graphs
};

}  // namespace torch_lazy::lazy
