// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/autocast_weights_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "backends/registry.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/metrics.h"
#include "lazy/host/lock.h"
#include "lazy/ops/deterministic.h"
#include "lazy/run/failed_kernels.h"
#include "lazy/trace/storage.h"

namespace torch_lazy::lazy {
namespace {

constexpr int64_t kFollowingRuns = 2;  // before it is worth it

// All that have begun, and a lock over them.
std::mutex& AllMutex() {
  static std::mutex* const mutex = new std::mutex;
  return *mutex;
}

std::set<AutocastWeightsPlan*>& All() {
  static auto* const all = new std::set<AutocastWeightsPlan*>;
  return *all;
}

}  // namespace

std::unique_ptr<Variant> AutocastWeights::For(const PlainPlan& plain, const Trace& /*trace*/, Account* account) {
  if (backends::Get().target() != codegen::Target::kCuda) return nullptr;
  const bool narrows_any = !NarrowedSlots(plain.planned().graph(), plain.lowered()).empty();
  return narrows_any ? std::unique_ptr<Variant>(new AutocastWeights(plain, account)) : nullptr;
}

bool AutocastWeights::Guard(const Trace& /*trace*/) { return base::Number(base::Option::kCompare) == 0; }

std::shared_ptr<Runnable> AutocastWeights::Prepare(const std::shared_ptr<Runnable>& next, const Trace& /*trace*/,
                                                   bool /*once*/) {
  if (run_ == nullptr || run_->next() != next) run_ = std::make_shared<AutocastWeightsPlan>(plain_, next, &account_);
  return run_;
}

AutocastWeightsPlan::AutocastWeightsPlan(const PlainPlan& plain, std::shared_ptr<Runnable> next, Account* account)
    : calls_(plain.calls()),
      lowered_(plain.lowered()),
      planned_(plain.planned()),
      next_(std::move(next)),
      account_(*account),
      slots_(NarrowedSlots(planned_.graph(), lowered_)) {}

bool AutocastWeightsPlan::Follows(const Trace& trace) const {
  if (stamps_.empty()) return false;
  for (size_t k = 0; k < slots_.size(); ++k) {
    const Trace::Slot& slot = trace.slots[slots_[k]];
    if (slot.stamp != stamps_[k]) return false;
  }
  return true;
}

bool AutocastWeightsPlan::IsCompiled(const Trace& trace) {
  if (graphs_ == nullptr) {
    auto graphs = std::make_unique<AutocastGraphs>(AutocastGraphsOf(planned_.graph(), lowered_));
    bool known = false;
    planned_first_ = PlanOf(&graphs->first, calls_.IsDeterministic(), &known);
    planned_step_ = PlanOf(&graphs->step, calls_.IsDeterministic(), &known);
    graphs_ = std::move(graphs);
  }
  const bool first = planned_first_->Want(graphs_->first.symbols, 1);
  if (planned_step_->Want(graphs_->step.symbols, 1) && first) return true;
  const bool first_failed = NoteFailures(planned_first_->Failures(), graphs_->first, calls_.calls(), trace);
  refused_ = NoteFailures(planned_step_->Failures(), graphs_->step, calls_.calls(), trace) || first_failed;
  return false;
}

// The narrow values are the outputs of a run on the parameters alone.
std::string AutocastWeightsPlan::Begin(const Trace& trace) {
  auto step = std::make_unique<ReadyPlan>(calls_, graphs_->step, *planned_step_);
  if (step->PeakBytes() > next_->PeakBytes() + next_->PeakBytes() / 20) return "their memory would be the peak";
  EndOthersOf(trace);
  next_->Release();
  Trace scratch;
  scratch.slots.resize(trace.slots.size());
  for (const int32_t slot : slots_) scratch.slots[slot].content = trace.slots[slot].content;
  if (!ReadyPlan(calls_, graphs_->first, *planned_first_).Run(&scratch)) return "they could not be made";
  step_ = std::move(step);
  return "";
}

bool AutocastWeightsPlan::TryBegin(const Trace& trace) {
  const double start = SecondsNow();
  std::string why;
  try {
    why = Begin(trace);
  } catch (const std::exception& error) {
    why = error.what();
  }
  account_.Spend(SecondsNow() - start + planned_first_->TakePlanningSeconds() + planned_step_->TakePlanningSeconds());
  refused_ = !why.empty();
  if (refused_) {
    DropContents();
    LAZY_LOG(1, "narrow weights are not kept: ", why);
  } else {
    LAZY_LOG(1, "narrow weights are kept from run to run: ", graphs_->step.kept_contents->size());
  }
  return !refused_;
}

// Those whose narrow weights this one is about to write hold what nobody will read.
void AutocastWeightsPlan::EndOthersOf(const Trace& trace) {
  std::vector<uint64_t> storages;
  {
    Locked lock(DeviceLock());
    for (const int32_t slot : slots_) {
      if (trace.slots[slot].owner != nullptr) storages.push_back(trace.slots[slot].owner->serial());
    }
  }
  const std::lock_guard<std::mutex> all(AllMutex());
  storages_ = std::move(storages);
  for (AutocastWeightsPlan* const other : All()) {
    if (other == this || std::ranges::find_first_of(other->storages_, storages_) == other->storages_.end()) continue;
    if (const std::unique_lock<std::mutex> lock(other->mutex_, std::try_to_lock); lock.owns_lock()) other->End();
  }
  All().insert(this);
}

void AutocastWeightsPlan::End() {
  patience_.StartOver();
  if (step_ == nullptr) return;
  step_.reset();
  DropContents();
  patience_.Disappoint();
}

void AutocastWeightsPlan::DropContents() {
  for (c10::Storage& content : *graphs_->step.kept_contents) content = c10::Storage();
}

AutocastWeightsPlan::~AutocastWeightsPlan() {
  const std::lock_guard<std::mutex> all(AllMutex());
  All().erase(this);
}

void AutocastWeightsPlan::Stamp(Trace* trace) {
  Locked lock(DeviceLock());
  for (const int32_t slot : slots_) {
    stamps_.push_back(LazyStorageImpl::NextStamp());
    trace->slots[slot].next_stamp = stamps_.back();
  }
}

bool AutocastWeightsPlan::RunBy(Runnable* way, Trace* trace) {
  const bool has_run = way->Run(trace);
  replays_.store(way->replays(), std::memory_order_relaxed);
  return has_run;
}

bool AutocastWeightsPlan::WouldReplay(Trace* trace) const {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || refused_ || !Follows(*trace)) return next_->WouldReplay(trace);
  if (step_ != nullptr) return step_->WouldReplay(trace);
  Patience patience = patience_;
  patience.Run();
  const bool compiles = graphs_ != nullptr && (planned_first_->IsPending() || planned_step_->IsPending());
  return (compiles || !patience.IsWorth(kFollowingRuns)) && next_->WouldReplay(trace);
}

bool AutocastWeightsPlan::Run(Trace* trace) {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || refused_) return RunBy(next_.get(), trace);
  if (Follows(*trace)) {
    patience_.Run();
  } else {
    End();
  }
  stamps_.clear();  // should it fail
  const bool is_narrow =
      step_ != nullptr || (patience_.IsWorth(kFollowingRuns) && IsCompiled(*trace) && TryBegin(*trace));
  if (!RunBy(is_narrow ? step_.get() : next_.get(), trace)) return false;
  if (is_narrow) {
    account_.Save(0);
    base::Count(base::Counter::kValuesCarried, static_cast<int64_t>(graphs_->step.kept_contents->size()));
  }
  Stamp(trace);
  return true;
}

}  // namespace torch_lazy::lazy
