// SPDX-License-Identifier: Apache-2.0
#include "lazy/prediction.h"

#include "lazy/settings.h"

namespace torch_lazy::lazy {

Prediction::Prediction(const Op& op) : op_(op), lock_(DeviceLock()), trace_(ThreadTrace()), call_(trace_->at->likely) {
  if (call_ == nullptr || call_->words()[0] != FirstWord(op) || trace_->ends_step) {
    call_ = nullptr;
    return;
  }
  next_word_ = call_->words() + 1;
  next_slot_ = call_->slots();
}

bool Prediction::Operand(const CallOperand& operand) {
  LazyStorageImpl* storage = operand.storage;
  if (storage->writer != nullptr && storage->writer != trace_.get()) return false;
  int32_t slot = -1;
  for (const LazyStorageImpl::Touch& touch : storage->touches) {
    if (touch.trace.get() == trace_.get()) slot = touch.slot;
    else if (operand.written) return false;  // another thread's trace reads it
  }
  if (slot < 0) {
    slot = static_cast<int32_t>(trace_->slots.size());
    for (size_t j = 0; j < operands_.size(); ++j) {
      if (operands_[j].storage == storage) {
        slot = call_->slots()[j];
        break;
      }
      slot = std::max(slot, call_->slots()[j] + 1);
    }
  }
  operands_.push_back(operand);
  return slot == *next_slot_++;
}

void Prediction::Take() {
  base::Count(base::Counter::kCallsTotal);
  TouchOperands(operands_, {call_->slots(), call_->num_slots}, trace_);
}

}  // namespace torch_lazy::lazy
