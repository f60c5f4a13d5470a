// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/plain_plan.h"

#include <algorithm>
#include <utility>

#include "backends/registry.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/metrics.h"
#include "lazy/lower/lower.h"
#include "lazy/ops/deterministic.h"
#include "lazy/run/failed_kernels.h"
#include "lazy/trace/history.h"
#include "lazy/variants/try_to.h"

namespace torch_lazy::lazy {
namespace {

constexpr int kSettled = 8;  // runs of an entry after which it is taken for a loop's
constexpr const char* kOpByOp = "it runs op by op";

}  // namespace

const std::shared_ptr<ReadyPlan>& PlainPlan::Prepare(const Trace& trace, bool once) {
  bool known = cuts_ > 0;
  is_new_ = false;
  if (!once && ++cuts_ == kSettled) backends::Get().Settle();
  if (!lowering_tried_ && !once && base::Compilation() != base::CompileMode::kOff) known = TryLowering(trace) || known;
  if (!once) base::Count(known ? base::Counter::kTraceHits : base::Counter::kTraceMisses);
  if (!known && !once) NoteMiss(trace, static_cast<size_t>(std::ranges::count(calls_.live(), true)));
  if (bound_ == nullptr && planned_ != nullptr && IsReady(trace)) Bind();
  return bound_;
}

// True if the graph is known. The first steps of a program that compiles in the background are not held up for graphs
// that may not come again.
bool PlainPlan::TryLowering(const Trace& trace) {
  const bool wait = CompilationFor(calls_.IsDeterministic()) == base::CompileMode::kSync;
  if (size_family_ == nullptr) size_family_ = SizeFamilyOf(calls_.calls(), calls_.live());
  const std::shared_ptr<PlannedGraph> others = size_family_->planned();
  if (!wait && others != nullptr && others->IsPending()) return true;
  const bool is_first = size_family_->cuts.fetch_add(1, std::memory_order_relaxed) == 0;
  is_new_ = is_first;
  if (is_first && !wait && !size_family_->HasComeTwice()) return false;
  lowering_tried_ = true;
  bool known = false;
  TryTo("lowered", kOpByOp, [&] {
    lowered_ = Lower(calls_, trace);
    if (lowered_ != nullptr) planned_ = PlanOf(lowered_.get(), calls_.IsDeterministic(), &known);
    if (planned_ != nullptr) planned_->NameOperators(*lowered_, calls_.calls());
  });
  size_family_->set_planned(planned_);
  if (planned_ != nullptr && !wait) size_family_->NoteThatItHas();
  return known;
}

bool PlainPlan::IsReady(const Trace& trace) {
  if (planned_->Want(lowered_->symbols, cuts_ - std::exchange(told_, cuts_))) return true;
  while (LeaveFailuresToAten(trace)) {
    if (planned_->Want(lowered_->symbols, cuts_)) return true;
  }
  return false;
}

// A kernel that failed costs the calls that it was to compute. Those of the new plan may fail, too, but not for ever.
bool PlainPlan::LeaveFailuresToAten(const Trace& trace) {
  if (attempts_left_ == 0 || !NoteFailures(planned_->Failures(), *lowered_, calls_.calls(), trace)) return false;
  std::vector<bool> former = calls_.left_to_aten();
  former.resize(calls_.calls().size());
  std::vector<bool> left = former;
  for (const FailedKernel& kernel : planned_->Failures()) {
    for (const ir::Value node : kernel.nodes) {
      if (const int32_t call = lowered_->calls[static_cast<size_t>(node)]; call >= 0)
        left[static_cast<size_t>(call)] = true;
    }
  }
  attempts_left_ = left == former ? 0 : attempts_left_ - 1;
  calls_.LeaveToAten(std::move(left));
  std::unique_ptr<LoweredTrace> lowered;
  if (attempts_left_ > 0) TryTo("lowered", kOpByOp, [&] { lowered = Lower(calls_, trace); });
  if (lowered == nullptr) {
    LAZY_LOG(1, "kernels failed, and their trace runs op by op");
    attempts_left_ = 0;
    return false;
  }
  LAZY_LOG(1, "kernels failed: of ", calls_.calls().size(), " calls, ATen runs ", lowered->by_aten.size(),
           " where it ran ", lowered_->by_aten.size());
  lowered_ = std::move(lowered);
  bool known = false;
  planned_ = PlanOf(lowered_.get(), calls_.IsDeterministic(), &known);
  size_family_->set_planned(planned_);
  return true;
}

void PlainPlan::Bind() {
  const bool is_bound =
      TryTo("bound", kOpByOp, [&] { bound_ = std::make_shared<ReadyPlan>(calls_, *lowered_, *planned_); });
  if (!is_bound) planned_ = nullptr;  // it would fail again
}

}  // namespace torch_lazy::lazy
