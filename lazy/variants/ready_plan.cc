// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/ready_plan.h"

#include "lazy/host/ledger.h"

namespace torch_lazy::lazy {

bool ReadyPlan::Run(Trace* trace) {
  if (cuda_graph_ == nullptr) return bound_.Run(trace);
  const double start = SecondsNow();
  if (cuda_graph_->Run(trace)) return true;
  if (!bound_.Run(trace)) return false;
  cuda_graph_->AddLaunched(SecondsNow() - start);
  return true;
}

}  // namespace torch_lazy::lazy
