// SPDX-License-Identifier: Apache-2.0
// The plan of an entry whose runs follow one another on the same parameters.
//
// Note [Autocast weights]
// A step under autocast narrows its weights for its products, and writes the weights at its end. Once an entry has run
// a few times on just what its own run before has left in them, it is compiled anew, beside the program as ever, so
// that the kernel which writes a weight writes the narrow value as well (lazy/variants/autocast_weights), for the next
// run. Stamps of the storages' contents tell: whoever else writes a weight gives it another, and a weight whose address
// somebody has got has none. Then the narrow values go, the plan that knows of none runs, and it takes twice as many
// runs to come back. They are there until the step has ended, and between steps: where the step's peak would be higher
// by more than a twentieth there are none, and of entries that write the same weights (a step for each size, say) the
// last one to begin has them. Traces that are run in parts have none.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lazy/host/ledger.h"
#include "lazy/host/patience.h"
#include "lazy/variants/autocast_weights.h"
#include "lazy/variants/plain_plan.h"
#include "lazy/variants/variant.h"

namespace torch_lazy::lazy {

// The runs of one plan.
class AutocastWeightsPlan final : public Runnable {
 public:
  // `next`: the way to run without narrow weights.
  AutocastWeightsPlan(const PlainPlan& plain, std::shared_ptr<Runnable> next, Account* account);
  ~AutocastWeightsPlan() override;

  bool Run(Trace* trace) override;
  void Release() override { next_->Release(); }
  size_t PeakBytes() const override { return next_->PeakBytes(); }
  bool runs_ahead() const override { return next_->runs_ahead(); }
  bool ahead_by_replay() const override { return next_->ahead_by_replay(); }
  bool replays() const override { return replays_.load(std::memory_order_relaxed); }
  bool WouldReplay(Trace* trace) const override;
  bool shares_launches() const override { return next_->shares_launches(); }
  const std::shared_ptr<Runnable>& next() const { return next_; }

 private:
  bool Follows(const Trace& trace) const;
  bool RunBy(Runnable* way, Trace* trace);
  bool IsCompiled(const Trace& trace);
  bool TryBegin(const Trace& trace);
  std::string Begin(const Trace& trace);  // why it cannot; empty: nothing
  void EndOthersOf(const Trace& trace);
  void End();
  void DropContents();
  void Stamp(Trace* trace);

  const CallSequence& calls_;
  const LoweredTrace& lowered_;
  const PlannedGraph& planned_;
  const std::shared_ptr<Runnable> next_;
  Account& account_;                        // of sets of narrow weights, and runs that take them
  const std::vector<int32_t> slots_;        // of the wide parameters
  std::atomic<bool> replays_{false};        // the run before
  mutable std::mutex mutex_;                // over what follows, for a whole run
  std::vector<uint64_t> stamps_;            // that the last run has left there; empty: unknown
  Patience patience_;                       // for runs that follow one another
  bool refused_ = false;                    // for its memory, or what failed
  std::unique_ptr<AutocastGraphs> graphs_;  // null: not tried
  std::shared_ptr<PlannedGraph> planned_first_, planned_step_;
  std::unique_ptr<ReadyPlan> step_;  // while its contents are there
  // Of the wide parameters at the begin, by number; guarded by the list of all such plans.
  std::vector<uint64_t> storages_;
};

class AutocastWeights final : public Variant {
 public:
  // Null if the plan narrows no weight that it writes.
  static std::unique_ptr<Variant> For(const PlainPlan& plain, const Trace& trace, Account* account);

  // Whether the trace follows the last run is known when that has ended: the run asks.
  bool Guard(const Trace& trace) override;
  std::shared_ptr<Runnable> Prepare(const std::shared_ptr<Runnable>& next, const Trace& trace, bool once) override;
  void Release() override { run_ = nullptr; }

 private:
  AutocastWeights(const PlainPlan& plain, Account* account) : plain_(plain), account_(*account) {}

  const PlainPlan& plain_;
  Account& account_;
  std::shared_ptr<AutocastWeightsPlan> run_;  // around the way that was next the last time
};

}  // namespace torch_lazy::lazy
