// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace/trace.h"

#include "base/of_thread.h"

namespace torch_lazy::lazy {

bool Trace::Updates(const TrieNode& call) const {
  for (const NodeOperand& operand : call.operands) {
    if (operand.written && slots[operand.slot].older) return true;
  }
  return false;
}

const c10::IValue& Trace::Argument(const TrieNode& call, size_t arg) const {
  const int32_t place = call.PlaceOfNumber(arg);
  return place >= 0 ? numbers[place] : call.args[arg];
}

// Each call comes here: that the trace has been constructed is checked once a thread.
std::shared_ptr<Trace>& NewestOfThread() {
  struct Newest {
    std::shared_ptr<Trace> trace;
  };
  return base::OfThread<Newest>().trace;
}

void CheckNotFailed(const Trace& trace) {
  TORCH_CHECK(trace.failure.empty(),
              "lazy: the tensor has no value, since a call before the one that makes it failed: ", trace.failure);
}

AliveAfter::AliveAfter(const Trace& trace, size_t end)
    : trace_(trace), end_(end), uses_(trace.slots.size(), Use::kNone) {
  if (end == 0) return;
  for (size_t k = end - 1; k-- > 0 && updates_end_ == 0;) {
    if (trace.Updates(*trace.path[k])) updates_end_ = k + 1;
  }
  is_pure_ = updates_end_ == 0 && !trace.Updates(*trace.path[end - 1]);
  for (const NodeOperand& operand : trace.path[end - 1]->operands) {
    Use& use = uses_[operand.slot];
    use = operand.written || use == Use::kWrites ? Use::kWrites : Use::kReads;
  }
}

bool AliveAfter::operator()(size_t slot) const {
  const uint32_t death = trace_.slots[slot].calls_at_death;
  if (death != end_) return death > end_;
  return trace_.slots[slot].first_call < updates_end_ || (!is_pure_ && uses_[slot] != Use::kReads);
}

}  // namespace torch_lazy::lazy
