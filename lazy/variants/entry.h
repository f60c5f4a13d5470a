// SPDX-License-Identifier: Apache-2.0
// What runs when a trace is cut at a node of the trie.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/types/span.h"
#include "lazy/trace/trace.h"
#include "lazy/variants/unused_outputs.h"

namespace torch_lazy::lazy {

class BoundPlan;
class CarriedPlan;
class FrozenPlan;
class Alike;
class PlannedGraph;
struct LoweredTrace;

// Made at the first cut at its node with live outputs that no earlier entry of the node serves, or where cuts need much
// less.
class Entry {
 public:
  // `replaced`: one of the same node that will run no more, or seldom.
  Entry(const TrieNode* end, std::vector<bool> live, Entry* replaced = nullptr);
  ~Entry();

  // Runs the trace, which was cut at this entry's node: by its plan if that is compiled, else call by call. `once`: no
  // such cut is expected again, so nothing is asked of the compiler.
  void Run(Trace* trace, bool once);

  // True if the trace may run while the next is recorded: Note [Runs ahead].
  bool RunsAhead();

  // True if its plan is compiled, and launches of several such steps are one that takes no longer than theirs.
  bool shares_launches() const { return shares_launches_; }

  // True if a cut whose live written slots are `live` can use this entry.
  bool Serves(const std::vector<bool>& live) const;
  const std::vector<bool>& live() const { return live_; }
  // True if call k is not lowered, since a kernel that would compute it has failed.
  bool IsLeftToAten(size_t k) const { return k < left_to_aten_.size() && left_to_aten_[k]; }
  Need& need() { return need_; }  // of its cuts; guarded by the device lock
  absl::Span<const TrieNode* const> calls() const { return calls_; }
  // Slots whose content nobody needs after call k.
  absl::Span<const int32_t> EndAfter(size_t k) const { return ends_[k]; }

 private:
  // Its plan, the memory of the plan's graph, and what is carried, until it runs again.
  void LetGo();
  struct Ready {
    std::shared_ptr<const BoundPlan> plan;  // null while there is none
    std::shared_ptr<CarriedPlan> carried;   // runs it, or what takes its place; null: nobody does
  };
  Ready Prepare(const Trace& trace, bool once);
  void Bind(const Trace& trace, const PlannedGraph& planned);
  bool TryLowering(const Trace& trace);
  bool IsPlanReady(const Trace& trace);
  // True if there is another plan now, without kernels that have failed.
  bool LeaveFailuresToAten(const Trace& trace);
  void CountCalls(bool compiled) const;

  std::vector<const TrieNode*> calls_;  // in program order
  std::vector<bool> live_;              // per slot: its content is an output
  Need need_;
  std::atomic<Entry*> replaced_;  // until this one runs
  std::vector<std::vector<int32_t>> ends_;
  std::vector<std::atomic<int64_t>*> recorded_;  // per call: how often its operator was run by ATen in its place

  std::atomic<bool> shares_launches_{false};

  std::mutex lock_;               // over what follows
  int cuts_ = 0;                  // that may come again
  int told_ = 0;                  // of these, the plan knows of so many
  std::shared_ptr<Alike> alike_;  // null until asked for
  bool lowering_tried_ = false;
  std::unique_ptr<LoweredTrace> lowered_;  // null if it cannot be lowered
  std::shared_ptr<PlannedGraph> planned_;
  std::shared_ptr<PlannedGraph> better_;  // will take its place; null if none will
  std::shared_ptr<const BoundPlan> bound_;
  std::unique_ptr<FrozenPlan> frozen_;    // null if there is nothing to freeze
  std::shared_ptr<CarriedPlan> carried_;  // of bound_; null if there is nothing to carry
  std::vector<bool> left_to_aten_;        // per call; empty: none is
  int attempts_left_ = 8;                 // plans to try, where kernels of each fail
};

}  // namespace torch_lazy::lazy
