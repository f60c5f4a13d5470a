// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/sized_plan.h"

#include "lazy/run/failed_kernels.h"
#include "lazy/variants/try_to.h"

namespace torch_lazy::lazy {

std::unique_ptr<Variant> SizedPlan::For(const PlainPlan& plain, const Trace& /*trace*/) {
  std::shared_ptr<PlannedGraph> planned = plain.planned().BetterFor(plain.lowered().symbols);
  return planned == nullptr ? nullptr : std::unique_ptr<Variant>(new SizedPlan(plain, std::move(planned)));
}

std::shared_ptr<Runnable> SizedPlan::Prepare(const std::shared_ptr<Runnable>& next, const Trace& trace, bool once) {
  if (bound_ != nullptr) return bound_;
  const LoweredTrace& lowered = plain_.lowered();
  if (once || !planned_->Want(lowered.symbols, 1)) {
    if (NoteFailures(planned_->Failures(), lowered, plain_.calls().calls(), trace)) planned_ = nullptr;
    return nullptr;
  }
  if (!planned_->IsMadeFor(lowered.symbols)) {  // it was planned for others meanwhile
    planned_ = plain_.planned().BetterFor(lowered.symbols);
    return nullptr;
  }
  const bool is_bound = TryTo("bound to its sizes", "its plain plan runs",
                              [&] { bound_ = std::make_shared<ReadyPlan>(plain_.calls(), lowered, *planned_); });
  if (is_bound) {
    next->Release();
  } else {
    planned_ = nullptr;  // it would fail again
  }
  return bound_;
}

}  // namespace torch_lazy::lazy
