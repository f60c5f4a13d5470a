// SPDX-License-Identifier: Apache-2.0
// The plan that is right for all traces of an entry: lowered, planned and bound when the entry has come often enough.
// What its kernels cannot compute is left to ATen.
#pragma once

#include <memory>

#include "lazy/lower/lowered_trace.h"
#include "lazy/run/plans.h"
#include "lazy/trace/call_sequence.h"
#include "lazy/trace/trace.h"
#include "lazy/variants/ready_plan.h"
#include "lazy/variants/size_family.h"

namespace torch_lazy::lazy {

// Of one entry, which has it under a lock.
class PlainPlan {
 public:
  // `calls` must outlive it. Which of them are left to ATen is for it to say.
  explicit PlainPlan(CallSequence* calls) : calls_(*calls) {}

  // The way to run the trace, which is about to run; null: call by call. `once`: no such trace is expected again, so
  // nothing is asked of the compiler.
  const std::shared_ptr<ReadyPlan>& Prepare(const Trace& trace, bool once);
  // Gives back the way to run, and its memory, until it is asked for again.
  void Release() { bound_ = nullptr; }

  const CallSequence& calls() const { return calls_; }
  // True if such calls, of whatever sizes, had never run before the last run that was prepared.
  bool is_new() const { return is_new_; }
  // --- once there is a way to run ---
  const LoweredTrace& lowered() const { return *lowered_; }
  PlannedGraph& planned() const { return *planned_; }

 private:
  bool TryLowering(const Trace& trace);
  bool IsReady(const Trace& trace);
  // True if there is another plan now, without kernels that have failed.
  bool LeaveFailuresToAten(const Trace& trace);
  void Bind();

  CallSequence& calls_;
  int cuts_ = 0;                             // that may come again
  int told_ = 0;                             // of these, the plan knows of so many
  std::shared_ptr<SizeFamily> size_family_;  // null until asked for
  bool lowering_tried_ = false;
  bool is_new_ = false;
  std::unique_ptr<LoweredTrace> lowered_;  // null if it cannot be lowered
  std::shared_ptr<PlannedGraph> planned_;
  std::shared_ptr<ReadyPlan> bound_;
  int attempts_left_ = 8;  // plans to try, where kernels of each fail
};

}  // namespace torch_lazy::lazy
