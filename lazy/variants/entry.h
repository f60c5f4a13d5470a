// SPDX-License-Identifier: Apache-2.0
// What runs when a trace is cut at a node of the trie.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "lazy/trace/call_sequence.h"
#include "lazy/trace/trace.h"
#include "lazy/trace/trace_runner.h"
#include "lazy/variants/plain_plan.h"
#include "lazy/variants/unused_outputs.h"
#include "lazy/variants/variants.h"

namespace torch_lazy::lazy {

// Made at the first cut at its node with live outputs that no earlier entry of the node serves, or where cuts need much
// less.
class Entry final : public TraceRunner {
 public:
  // `replaced`: one of the same node that will run no more, or seldom.
  Entry(const TrieNode* end, std::vector<bool> live, Entry* replaced = nullptr);

  // By its plan if that is compiled, or a variant of it; else call by call.
  void Run(Trace* trace, bool once) override;

  // True if the trace may run while the next is recorded: Note [Runs ahead].
  bool RunsAhead() const;

  // True if it ran as a CUDA graph.
  bool replays() const { return replays_.load(std::memory_order_relaxed); }

  // As BoundPlan says.
  bool ahead_by_replay() const { return ahead_by_replay_.load(std::memory_order_relaxed); }

  // True if a run of the trace would make calls that are the program's thread's: no CUDA graph fits.
  bool WouldRunCalls(Trace* trace);

  // True if its plan is compiled, and launches of several such steps are one that takes no longer than theirs.
  bool shares_launches() const { return shares_launches_.load(std::memory_order_relaxed); }

  bool Serves(const std::vector<bool>& live) const override;
  const std::vector<bool>& live() const { return calls_.live(); }
  UnusedOutputs& unused_outputs() { return unused_outputs_; }  // of its cuts; guarded by the device lock

 private:
  // What its ways to run hold, until it runs again.
  void LetGo();
  // The way to run the trace; null: call by call.
  std::shared_ptr<Runnable> Prepare(Trace* prepared, bool once);
  bool TryRun(Runnable* way, Trace* trace) const;
  void CountCalls(bool compiled) const;

  CallSequence calls_;  // what it leaves to ATen is guarded by the lock
  UnusedOutputs unused_outputs_;
  std::atomic<Entry*> replaced_;                 // until this one runs
  std::vector<std::atomic<int64_t>*> recorded_;  // per call: how often its operator was run by ATen in its place

  // Of the way it ran.
  std::atomic<bool> runs_ahead_{false}, ahead_by_replay_{false}, shares_launches_{false}, replays_{false};

  std::mutex lock_;  // over what follows
  PlainPlan plain_{&calls_};
  std::optional<Variants> variants_;  // nothing before the plain plan is ready
  std::weak_ptr<Runnable> way_;       // it ran
};

// The entry of the trace's last call that serves these live slots, made if there is none, or none that returns about as
// much as is needed. The device lock is held.
Entry* EntryFor(const Trace& trace, std::vector<bool> live);

}  // namespace torch_lazy::lazy
