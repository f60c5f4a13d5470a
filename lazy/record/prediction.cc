// SPDX-License-Identifier: Apache-2.0
#include "lazy/record/prediction.h"

#include "lazy/cuts/cut.h"
#include "lazy/ops/call_settings.h"
#include "lazy/trace/thread_trace.h"

namespace torch_lazy::lazy {

namespace {

// The thread's trace, which the next call may join.
const std::shared_ptr<Trace>& OpenTrace(std::unique_lock<RecursiveLock>* lock) {
  const std::shared_ptr<Trace>& trace = ThreadTrace();
  while (trace->ends_step) {
    const std::shared_ptr<Trace> ended = trace;
    lock->unlock();
    CutAndGoOn(ended, ended->what_ends());
    lock->lock();
    ThreadTrace();  // another one
  }
  return trace;
}

}  // namespace

Prediction::Prediction(const Op& op)
    : op_(op), lock_(DeviceLock()), trace_(OpenTrace(&lock_)), new_slots_(trace_->slots.size()) {
  Expected* const likely = trace_->at->likely;
  if (likely == nullptr || likely->words()[0] != FirstWord(op)) return;
  call_ = likely;
  next_word_ = call_->words() + 1;
  next_slot_ = call_->slots();
}

bool Prediction::Operand(const CallOperand& operand) {
  LazyStorageImpl* storage = operand.storage;
  if (storage->IsSwapped()) return false;
  if (storage->writer != nullptr && storage->writer != trace_.get() && !storage->writer->RunsAhead()) return false;
  int32_t slot = -1;
  for (const LazyStorageImpl::Touch& touch : storage->touches) {
    if (touch.trace.get() == trace_.get())
      slot = touch.slot;
    else if (operand.written && !touch.trace->RunsAhead())
      return false;  // another thread's trace reads it
  }
  if (slot < 0) slot = new_slots_.Of(storage);
  operands_.push_back(operand);
  return slot == *next_slot_++;
}

void Prediction::Take() {
  base::Count(base::Counter::kCallsTotal);
  TouchOperands(operands_, {call_->slots(), call_->num_slots}, trace_);
}

}  // namespace torch_lazy::lazy
