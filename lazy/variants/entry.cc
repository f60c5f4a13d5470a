// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/entry.h"

#include <algorithm>
#include <utility>

#include "base/flags.h"
#include "base/log.h"
#include "base/metrics.h"
#include "lazy/run/failed_kernels.h"
#include "lazy/run/interpreter.h"
#include "lazy/variants/compare.h"
#include "lazy/variants/try_to.h"

namespace torch_lazy::lazy {

Entry::Entry(const TrieNode* end, std::vector<bool> live, Entry* replaced)
    : calls_(end, std::move(live)), replaced_(replaced) {
  for (const TrieNode* call : calls_.calls())
    recorded_.push_back(&base::Cell(base::Tally::kCallsRecordedByOp, call->op->name));
}

std::shared_ptr<Runnable> Entry::Prepare(Trace* prepared, bool once) {
  const Trace& trace = *prepared;
  std::lock_guard<std::mutex> lock(lock_);
  std::shared_ptr<Runnable> way = plain_.Prepare(trace, once);
  prepared->is_new = plain_.is_new();
  if (way == nullptr) return nullptr;
  if (!variants_) {
    variants_.emplace();
    TryTo("given variants", "its plain plan runs", [&] { variants_ = Variants::For(plain_, trace); });
  }
  way = variants_->Choose(std::move(way), trace, once);
  runs_ahead_.store(way->runs_ahead(), std::memory_order_relaxed);
  ahead_by_replay_.store(way->ahead_by_replay(), std::memory_order_relaxed);
  replays_.store(way->replays(), std::memory_order_relaxed);
  shares_launches_.store(way->shares_launches(), std::memory_order_relaxed);
  way_ = way;
  return way;
}

bool Entry::WouldRunCalls(Trace* trace) {
  if (!ahead_by_replay()) return false;
  std::shared_ptr<Runnable> way;
  {
    const std::lock_guard<std::mutex> lock(lock_);
    way = way_.lock();
  }
  return way == nullptr || !way->WouldReplay(trace);
}

void Entry::Run(Trace* trace, bool once) {
  base::Count(base::Counter::kTracesRun);
  const base::CountTime time(base::Counter::kRunSeconds);
  WarnOfFailures();
  if (Entry* const replaced = replaced_.exchange(nullptr)) replaced->LetGo();
  const std::shared_ptr<Runnable> way = Prepare(trace, once);
  const bool compiled = way != nullptr && base::Compilation() != base::CompileMode::kOff;
  CountCalls(compiled);
  trace->op_by_op = !compiled;
  if (compiled && TryRun(way.get(), trace)) return;
  Interpret(calls_, trace);
}

bool Entry::TryRun(Runnable* way, Trace* trace) const {
  const bool compare = base::Number(base::Option::kCompare) != 0;
  if (compare ? RunAndCompare(calls_, plain_.lowered(), way, trace) : way->Run(trace)) return true;
  LAZY_LOG(1, "a call failed: the trace is run again, call by call");
  return false;
}

void Entry::LetGo() {
  std::lock_guard<std::mutex> lock(lock_);
  plain_.Release();
  if (variants_) variants_->Release();
  runs_ahead_ = false;
}

bool Entry::RunsAhead() const {
  return base::Compilation() != base::CompileMode::kOff && base::Number(base::Option::kCompare) == 0 &&
         runs_ahead_.load(std::memory_order_relaxed);
}

void Entry::CountCalls(bool compiled) const {
  const auto count = [](std::atomic<int64_t>* recorded) { recorded->fetch_add(1, std::memory_order_relaxed); };
  if (compiled) {
    for (const int32_t k : plain_.lowered().by_aten) count(recorded_[static_cast<size_t>(k)]);
  } else {
    base::Count(base::Counter::kTracesInterpreted);
    std::for_each(recorded_.begin(), recorded_.end(), count);
  }
  const size_t by_aten = compiled ? plain_.lowered().by_aten.size() : calls_.calls().size();
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
