// SPDX-License-Identifier: Apache-2.0
#include "lazy/carried_plan.h"

#include <algorithm>
#include <utility>

#include "backends/registry.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/metrics.h"

namespace torch_lazy::lazy {

std::unique_ptr<CarriedPlan> CarriedPlan::For(const Entry& entry, const LoweredTrace& lowered, const PlannedGraph& planned) {
  if (base::IsDisabled("carry") || backends::Get().target() != codegen::Target::kCuda) return nullptr;
  std::vector<int32_t> slots = NarrowedSlots(planned.graph(), lowered);
  return slots.empty() ? nullptr : std::unique_ptr<CarriedPlan>(new CarriedPlan(entry, lowered, planned, std::move(slots)));
}

bool CarriedPlan::Follows(const Trace& trace) const {
  if (stamps_.empty()) return false;
  for (size_t k = 0; k < slots_.size(); ++k) {
    const Trace::Slot& slot = trace.slots[slots_[k]];
    if (slot.inherits || slot.stamp != stamps_[k]) return false;
  }
  return true;
}

bool CarriedPlan::IsCompiled() {
  if (carry_ == nullptr) {
    carry_ = std::make_unique<Carry>(CarryOf(planned_.graph(), lowered_));
    bool known = false;
    planned_first_ = PlanOf(std::exchange(carry_->first.graph, {}), &carry_->first.symbols, &known);
    planned_step_ = PlanOf(std::exchange(carry_->step.graph, {}), &carry_->step.symbols, &known);
  }
  const bool first = planned_first_->Want(carry_->first.symbols, 1);
  return planned_step_->Want(carry_->step.symbols, 1) && first;
}

// The narrow values are the outputs of a run on the parameters alone.
bool CarriedPlan::Begin(const BoundPlan& plain, Trace* trace) {
  auto step = std::make_unique<BoundPlan>(entry_, carry_->step, *planned_step_);
  refused_ = step->PeakBytes() > plain.PeakBytes() + plain.PeakBytes() / 20;
  if (refused_) {
    LAZY_LOG(1, "narrow parameters are not carried: their memory would be the peak");
    return false;
  }
  plain.DropGraph();
  Trace scratch;
  scratch.slots.resize(trace->slots.size());
  for (const int32_t slot : slots_) scratch.slots[slot].content = trace->slots[slot].content;
  BoundPlan(entry_, carry_->first, *planned_first_).Run(&scratch);
  step_ = std::move(step);
  LAZY_LOG(1, "narrow parameters are carried from run to run: ", carry_->step.carried->size());
  return true;
}

void CarriedPlan::End() {
  constexpr int kMostPatience = 1 << 16;
  following_runs_ = 0;
  if (step_ == nullptr) return;
  step_.reset();
  for (c10::Storage& content : *carry_->step.carried) content = c10::Storage();
  patience_ = std::min(2 * patience_, kMostPatience);
}

void CarriedPlan::Stamp(Trace* trace) {
  Locked lock(DeviceLock());
  for (const int32_t slot : slots_) {
    stamps_.push_back(LazyStorageImpl::NextStamp());
    trace->slots[slot].next_stamp = stamps_.back();
  }
}

bool CarriedPlan::Run(const BoundPlan& plain, Trace* trace) {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || refused_) return plain.Run(trace);
  if (Follows(*trace)) {
    ++following_runs_;
  } else {
    End();
  }
  stamps_.clear();  // should it fail
  const bool is_carried = following_runs_ >= patience_ && IsCompiled() && (step_ != nullptr || Begin(plain, trace));
  if (is_carried) base::Count(base::Counter::kValuesCarried, static_cast<int64_t>(carry_->step.carried->size()));
  if (!(is_carried ? *step_ : plain).Run(trace)) return false;
  Stamp(trace);
  return true;
}

}  // namespace torch_lazy::lazy
