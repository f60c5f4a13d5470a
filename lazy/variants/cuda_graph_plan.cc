// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/cuda_graph_plan.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace torch_lazy::lazy {
namespace {

constexpr size_t kFewestSteps = 3;
constexpr size_t kMostTurns = 64;       // so many new ones in a row never come back
constexpr int64_t kShortAbsence = 256;  // runs of the plan; what was away for less may be away for longer
constexpr int64_t kTimesLonger = 4;
constexpr int kTimesHandedOn = 3;  // to one thread, to another, and back

// A plan that could have a CUDA graph runs: the time of kept_cuda_graphs.h.
int64_t NextRun() {
  static std::atomic<int64_t> runs{0};
  return runs.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

std::unique_ptr<CudaGraphPlan> CudaGraphPlan::For(const BoundPlan& plan) {
  const CudaGraphs* graphs = FindCudaGraphs();
  if (graphs == nullptr || plan.plan().steps.size() < kFewestSteps || plan.has_page()) return nullptr;
  if (TakesAnothersMemory(plan)) return nullptr;
  return std::unique_ptr<CudaGraphPlan>(new CudaGraphPlan(plan, *graphs));
}

bool CudaGraphPlan::Run(Trace* trace) {
  if (refused_.load(std::memory_order_relaxed)) return plan_.Run(trace);
  const int64_t now = NextRun();
  const double start = SecondsNow();
  const std::shared_ptr<CudaGraphTurn> turn = TurnOf(trace);
  const auto outcome = turn == nullptr ? CudaGraphTurn::Outcome::kLaunch : turn->Run(trace, now, is_shared());
  replays_.store(outcome == CudaGraphTurn::Outcome::kReplayed, std::memory_order_relaxed);
  if (outcome == CudaGraphTurn::Outcome::kReplayed || outcome == CudaGraphTurn::Outcome::kRan) return true;
  if (outcome == CudaGraphTurn::Outcome::kNever) Refuse();
  if (!plan_.Run(trace)) return false;
  if (turn != nullptr) turn->AddLaunched(SecondsNow() - start);
  return true;
}

bool CudaGraphPlan::WouldReplay(Trace* trace) const {
  if (refused_.load(std::memory_order_relaxed)) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::optional<size_t> last = LastOfThisThread();
  const std::optional<size_t> found = last ? FindTurn(turns_[*last].next, trace) : std::nullopt;
  return found && turns_[*found].graph->WouldReplay(trace, is_shared());
}

void CudaGraphPlan::LetGo() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Turn& turn : turns_) turn.graph->LetGo();
}

void CudaGraphPlan::Refuse() {
  refused_ = true;
  const std::lock_guard<std::mutex> lock(mutex_);
  turns_.clear();
}

void CudaGraphPlan::NoteThread() {
  const std::thread::id thread = ProgramThread();
  if (std::exchange(last_thread_, thread) != thread && !is_shared()) ++handed_on_;
}

bool CudaGraphPlan::is_shared() const { return handed_on_ >= kTimesHandedOn; }

std::shared_ptr<CudaGraphTurn> CudaGraphPlan::TurnOf(Trace* trace) {
  const std::lock_guard<std::mutex> lock(mutex_);
  NoteThread();
  if (++runs_ % kShortAbsence == 0) RetireUnused();
  const std::optional<size_t> last = LastOfThisThread();
  std::optional<size_t> found = last ? FindTurn(turns_[*last].next, trace) : std::nullopt;
  strangers_ = found ? 0 : strangers_ + (last ? 1 : 0);
  is_one_turn_ |= strangers_ == kMostTurns;
  if (!found) found = AddTurn();
  if (!found) return nullptr;
  if (last) turns_[*last].next = *found;
  Turn& turn = turns_[*found];
  turn.longest_absence = std::max(turn.longest_absence, runs_ - std::exchange(turn.used, runs_));
  return turn.graph;
}

std::optional<size_t> CudaGraphPlan::LastOfThisThread() const {
  std::optional<size_t> last;
  for (size_t t = 0; t < turns_.size(); ++t) {
    if (turns_[t].graph->IsThisThreads() && (!last || turns_[t].used > turns_[*last].used)) last = t;
  }
  return last;
}

// Of several that are equally near, the expected one.
std::optional<size_t> CudaGraphPlan::FindTurn(size_t expected, Trace* trace) const {
  const auto fits = [&](size_t t) { return turns_[t].graph->IsThisThreads() && turns_[t].graph->memory().Fits(trace); };
  if (fits(expected)) return expected;
  for (size_t t = 0; t < turns_.size(); ++t) {
    if (t != expected && fits(t)) return t;
  }
  std::optional<size_t> nearest;
  size_t fewest = std::numeric_limits<size_t>::max();
  for (size_t k = 0; k < turns_.size() && fewest > 0; ++k) {
    const size_t t = (expected + k) % turns_.size();
    if (!turns_[t].graph->IsThisThreads()) continue;
    const auto [away, tell] = turns_[t].graph->memory().DistanceTo(trace);
    if (away >= fewest || (2 * away > tell && !is_one_turn_)) continue;
    nearest = t;
    fewest = away;
  }
  return nearest;
}

// Where there are many, in the place of one that came once, or came no more; nothing if there is none.
std::optional<size_t> CudaGraphPlan::AddTurn() {
  size_t place = turns_.size();
  if (place == kMostTurns) {
    const auto oldest = std::ranges::min_element(turns_, {}, &Turn::used);
    if (oldest->longest_absence != 0 && !IsUnused(*oldest)) return std::nullopt;
    place = static_cast<size_t>(oldest - turns_.begin());
  } else {
    turns_.emplace_back();
  }
  turns_[place] = {std::make_shared<CudaGraphTurn>(plan_, graphs_, &newest_), runs_, 0, place};
  return place;
}

bool CudaGraphPlan::IsUnused(const Turn& turn) const {
  return runs_ - turn.used > kTimesLonger * std::max(turn.longest_absence, kShortAbsence);
}

// A model that trains no more, a thread that has ended: what they hold would stay for as long as the plan.
void CudaGraphPlan::RetireUnused() {
  for (const Turn& turn : turns_) {
    if (IsUnused(turn)) turn.graph->Retire();
  }
}

}  // namespace torch_lazy::lazy
