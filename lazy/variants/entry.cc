// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/entry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/registry.h"
#include "base/check.h"
#include "base/faults.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/metrics.h"
#include "lazy/lower/lower.h"
#include "lazy/ops/deterministic.h"
#include "lazy/run/failed_kernels.h"
#include "lazy/run/interpreter.h"
#include "lazy/run/plans.h"
#include "lazy/trace/history.h"
#include "lazy/variants/autocast_weights_plan.h"
#include "lazy/variants/compare.h"
#include "lazy/variants/frozen_plan.h"
#include "lazy/variants/ready_plan.h"
#include "lazy/variants/size_family.h"

namespace torch_lazy::lazy {
namespace {

constexpr int kSettled = 8;  // runs of an entry after which it is taken for a loop's

}  // namespace

Entry::Entry(const TrieNode* end, std::vector<bool> live, Entry* replaced)
    : calls_(end, std::move(live)), replaced_(replaced) {
  for (const TrieNode* call : calls_.calls())
    recorded_.push_back(&base::Cell(base::Tally::kCallsRecordedByOp, call->op->name));
}

Entry::~Entry() = default;

// Calls `work`, which may fail for want of memory or by an error of ours: then the entry runs op by op. What else it
// raises, an interrupt say, is the caller's. False if it has failed.
template <typename Work>
bool TryTo(const char* what, const Work& work) {
  std::string why;
  try {
    LAZY_CHECK(!base::MustFail(), "a fault that was asked for");
    work();
  } catch (const base::CheckError& error) {
    why = error.what();
  } catch (const c10::Error& error) {
    why = error.what_without_backtrace();
  } catch (const std::bad_alloc& error) {
    why = error.what();
  }
  if (!why.empty()) base::WarnOnce(what, absl::StrCat("a trace could not be ", what, ", so it runs op by op: ", why));
  return why.empty();
}

// True if the graph is known. The first steps of a program that compiles in the background are not held up for graphs
// that may not come again.
bool Entry::TryLowering(const Trace& trace) {
  const bool wait = CompilationFor(calls_.IsDeterministic()) == base::CompileMode::kSync;
  if (size_family_ == nullptr) size_family_ = SizeFamilyOf(calls_.calls(), live());
  const std::shared_ptr<PlannedGraph> others = size_family_->planned();
  if (!wait && others != nullptr && others->IsPending()) return true;
  if (size_family_->cuts.fetch_add(1, std::memory_order_relaxed) == 0 && !wait) return false;
  lowering_tried_ = true;
  bool known = false;
  TryTo("lowered", [&] {
    lowered_ = Lower(calls_, trace);
    if (lowered_ != nullptr) planned_ = PlanOf(lowered_.get(), calls_.IsDeterministic(), &known);
  });
  size_family_->set_planned(planned_);
  return known;
}

bool Entry::IsPlanReady(const Trace& trace) {
  if (planned_->Want(lowered_->symbols, cuts_ - std::exchange(told_, cuts_))) return true;
  while (LeaveFailuresToAten(trace)) {
    if (planned_->Want(lowered_->symbols, cuts_)) return true;
  }
  return false;
}

// A kernel that failed costs the calls that it was to compute. Those of the new plan may fail, too, but not for ever.
bool Entry::LeaveFailuresToAten(const Trace& trace) {
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
  if (attempts_left_ > 0) TryTo("lowered", [&] { lowered = Lower(calls_, trace); });
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

Entry::Ready Entry::Prepare(const Trace& trace, bool once) {
  std::lock_guard<std::mutex> lock(lock_);
  bool known = cuts_ > 0;
  if (!once && ++cuts_ == kSettled) backends::Get().Settle();
  if (!lowering_tried_ && !once && base::Compilation() != base::CompileMode::kOff) known = TryLowering(trace) || known;
  if (!once) base::Count(known ? base::Counter::kTraceHits : base::Counter::kTraceMisses);
  if (!known && !once) NoteMiss(trace, static_cast<size_t>(std::count(live().begin(), live().end(), true)));
  if (planned_ == nullptr) return {};
  if (bound_ == nullptr && IsPlanReady(trace)) {
    Bind(trace, *planned_);
    if (planned_ == nullptr) return {};
    better_ = planned_->BetterFor(lowered_->symbols);
  }
  if (better_ != nullptr && !once && better_->Want(lowered_->symbols, 1)) {
    const bool is_made_for = better_->IsMadeFor(lowered_->symbols);  // or was it planned for others meanwhile?
    if (is_made_for) Bind(trace, *better_);
    better_ = is_made_for ? nullptr : planned_->BetterFor(lowered_->symbols);
  } else if (better_ != nullptr && NoteFailures(better_->Failures(), *lowered_, calls_.calls(), trace)) {
    better_ = nullptr;
  }
  if (bound_ != nullptr && frozen_ != nullptr && base::Number(base::Option::kCompare) == 0) {
    if (std::shared_ptr<const ReadyPlan> plan = frozen_->PlanFor(trace)) {
      bound_->DropCudaGraph();
      return {plan, nullptr};
    }
  }
  return {bound_, autocast_};
}

void Entry::Bind(const Trace& trace, const PlannedGraph& planned) {
  const bool is_bound = TryTo("bound", [&] {
    bound_ = std::make_shared<ReadyPlan>(calls_, *lowered_, planned);
    autocast_ = nullptr;  // it was the former plan's
    shares_launches_ = bound_->shares_launches();
    if (frozen_ == nullptr) frozen_ = FrozenPlan::For(calls_, trace);
    autocast_ = AutocastWeightsPlan::For(calls_, *lowered_, planned);
  });
  if (!is_bound && bound_ == nullptr) planned_ = nullptr;  // it would fail again
}

void Entry::Run(Trace* trace, bool once) {
  base::Count(base::Counter::kTracesRun);
  WarnOfFailures();
  if (Entry* const replaced = replaced_.exchange(nullptr)) replaced->LetGo();
  const auto [plan, autocast] = Prepare(*trace, once);
  if (plan == nullptr || base::Compilation() == base::CompileMode::kOff) {
    base::Count(base::Counter::kTracesInterpreted);
    CountCalls(/*compiled=*/false);
    Interpret(calls_, trace);
    return;
  }
  CountCalls(/*compiled=*/true);
  const bool compare = base::Number(base::Option::kCompare) != 0;
  const bool has_run = compare               ? RunAndCompare(calls_, *lowered_, *plan, trace)
                       : autocast != nullptr ? autocast->Run(*plan, trace)
                                             : plan->Run(trace);
  if (has_run) return;
  LAZY_LOG(1, "a call failed: the trace is run again, call by call");
  Interpret(calls_, trace);
}

void Entry::LetGo() {
  std::lock_guard<std::mutex> lock(lock_);
  bound_ = nullptr;
  autocast_ = nullptr;
}

bool Entry::RunsAhead() {
  if (base::Compilation() == base::CompileMode::kOff || base::Number(base::Option::kCompare) != 0) return false;
  std::lock_guard<std::mutex> lock(lock_);
  return bound_ != nullptr && bound_->runs_ahead();
}

void Entry::CountCalls(bool compiled) const {
  const auto count = [](std::atomic<int64_t>* recorded) { recorded->fetch_add(1, std::memory_order_relaxed); };
  if (compiled) {
    for (const int32_t k : lowered_->by_aten) count(recorded_[static_cast<size_t>(k)]);
  } else {
    std::for_each(recorded_.begin(), recorded_.end(), count);
  }
  const size_t by_aten = compiled ? lowered_->by_aten.size() : calls_.calls().size();
  base::Count(base::Counter::kCallsRecorded, static_cast<int64_t>(by_aten));
  base::Count(base::Counter::kCallsCompiled, static_cast<int64_t>(calls_.calls().size() - by_aten));
}

bool Entry::Serves(const std::vector<bool>& needed) const {
  for (size_t slot = 0; slot < needed.size(); ++slot) {
    if (needed[slot] && !live()[slot]) return false;
  }
  return true;
}

// Of those that serve a cut, the first returns least.
Entry* EntryFor(const Trace& trace, std::vector<bool> live) {
  TrieNode* const end = trace.at->node;
  std::vector<std::unique_ptr<TraceRunner>>& entries = end->entries;
  const auto of = [](const std::unique_ptr<TraceRunner>& runner) { return static_cast<Entry*>(runner.get()); };
  const auto serves =
      std::ranges::find_if(entries, [&](const std::unique_ptr<TraceRunner>& entry) { return entry->Serves(live); });
  if (serves != entries.end()) {
    Entry* const entry = of(*serves);
    UnusedOutputs& unused = entry->unused_outputs();
    if (!unused.AreMany(trace, live, entry->live())) return entry;
    LAZY_LOG(1, "the same calls with ", std::ranges::count(unused.needed(), true), " results of ",
             std::ranges::count(entry->live(), true));
    return of(*entries.insert(serves, std::make_unique<Entry>(end, unused.needed(), entry)));
  }
  for (const std::unique_ptr<TraceRunner>& entry : entries) {
    for (size_t s = 0; s < live.size(); ++s) live[s] = live[s] || of(entry)->live()[s];
  }
  return of(entries.emplace_back(std::make_unique<Entry>(end, std::move(live))));
}

}  // namespace torch_lazy::lazy
