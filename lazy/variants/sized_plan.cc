// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/sized_plan.h"

#include "lazy/run/failed_kernels.h"
#include "lazy/variants/try_to.h"

namespace torch_lazy::lazy {

std::unique_ptr<Variant> SizedPlan::For(const PlainPlan& plain, const Trace& /*trace*/, Account* account) {
  std::shared_ptr<PlannedGraph> planned = plain.planned().BetterFor(plain.lowered().symbols);
  return planned == nullptr ? nullptr : std::unique_ptr<Variant>(new SizedPlan(plain, std::move(planned), account));
}

std::shared_ptr<Runnable> SizedPlan::Prepare(const std::shared_ptr<Runnable>& next, const Trace& trace, bool once) {
  const LoweredTrace& lowered = plain_.lowered();
  if (bound_ == nullptr && !once && planned_->Want(lowered.symbols, 1)) {
    Bind();
    if (bound_ != nullptr) next->Release();
  } else if (bound_ == nullptr && NoteFailures(planned_->Failures(), lowered, plain_.calls().calls(), trace)) {
    planned_ = nullptr;
  }
  if (bound_ != nullptr) account_.Save(0);
  return bound_;
}

void SizedPlan::Bind() {
  const LoweredTrace& lowered = plain_.lowered();
  if (!planned_->IsMadeFor(lowered.symbols)) {  // it was planned for others meanwhile
    planned_ = plain_.planned().BetterFor(lowered.symbols);
    return;
  }
  const double start = SecondsNow();
  const bool is_bound = TryTo("bound to its sizes", "its plain plan runs",
                              [&] { bound_ = std::make_shared<ReadyPlan>(plain_.calls(), lowered, *planned_); });
  account_.Spend(SecondsNow() - start + planned_->TakePlanningSeconds());
  if (!is_bound) planned_ = nullptr;  // it would fail again
}

}  // namespace torch_lazy::lazy
