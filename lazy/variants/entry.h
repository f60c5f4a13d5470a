// SPDX-License-Identifier: Apache-2.0
// What runs when a trace is cut at a node of the trie.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "lazy/trace/call_sequence.h"
#include "lazy/trace/trace.h"
#include "lazy/trace/trace_runner.h"
#include "lazy/variants/unused_outputs.h"

namespace torch_lazy::lazy {

class AutocastWeightsPlan;
class FrozenPlan;
class SizeFamily;
class PlannedGraph;
class ReadyPlan;
struct LoweredTrace;

// Made at the first cut at its node with live outputs that no earlier entry of the node serves, or where cuts need much
// less.
class Entry final : public TraceRunner {
 public:
  // `replaced`: one of the same node that will run no more, or seldom.
  Entry(const TrieNode* end, std::vector<bool> live, Entry* replaced = nullptr);
  ~Entry() override;

  // By its plan if that is compiled, else call by call.
  void Run(Trace* trace, bool once) override;

  // True if the trace may run while the next is recorded: Note [Runs ahead].
  bool RunsAhead();

  // True if its plan is compiled, and launches of several such steps are one that takes no longer than theirs.
  bool shares_launches() const { return shares_launches_; }

  bool Serves(const std::vector<bool>& live) const override;
  const std::vector<bool>& live() const { return calls_.live(); }
  UnusedOutputs& unused_outputs() { return unused_outputs_; }  // of its cuts; guarded by the device lock

 private:
  // Its plan, the memory of the plan's CUDA graph, and the narrow weights, until it runs again.
  void LetGo();
  struct Ready {
    std::shared_ptr<const ReadyPlan> plan;          // null while there is none
    std::shared_ptr<AutocastWeightsPlan> autocast;  // runs it, or what takes its place; null: nobody does
  };
  Ready Prepare(const Trace& trace, bool once);
  void Bind(const Trace& trace, const PlannedGraph& planned);
  bool TryLowering(const Trace& trace);
  bool IsPlanReady(const Trace& trace);
  // True if there is another plan now, without kernels that have failed.
  bool LeaveFailuresToAten(const Trace& trace);
  void CountCalls(bool compiled) const;

  CallSequence calls_;  // what it leaves to ATen is guarded by the lock
  UnusedOutputs unused_outputs_;
  std::atomic<Entry*> replaced_;                 // until this one runs
  std::vector<std::atomic<int64_t>*> recorded_;  // per call: how often its operator was run by ATen in its place

  std::atomic<bool> shares_launches_{false};

  std::mutex lock_;                          // over what follows
  int cuts_ = 0;                             // that may come again
  int told_ = 0;                             // of these, the plan knows of so many
  std::shared_ptr<SizeFamily> size_family_;  // null until asked for
  bool lowering_tried_ = false;
  std::unique_ptr<LoweredTrace> lowered_;  // null if it cannot be lowered
  std::shared_ptr<PlannedGraph> planned_;
  std::shared_ptr<PlannedGraph> better_;  // will take its place; null if none will
  std::shared_ptr<const ReadyPlan> bound_;
  std::unique_ptr<FrozenPlan> frozen_;             // null if there is nothing to freeze
  std::shared_ptr<AutocastWeightsPlan> autocast_;  // of bound_; null if there are no weights to narrow
  int attempts_left_ = 8;                          // plans to try, where kernels of each fail
};

// The entry of the trace's last call that serves these live slots, made if there is none, or none that returns about as
// much as is needed. The device lock is held.
Entry* EntryFor(const Trace& trace, std::vector<bool> live);

}  // namespace torch_lazy::lazy
