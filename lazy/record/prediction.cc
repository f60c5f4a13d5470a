// SPDX-License-Identifier: Apache-2.0
#include "lazy/record/prediction.h"

#include "lazy/cuts/cut.h"
#include "lazy/ops/call_settings.h"
#include "lazy/trace/thread_trace.h"

namespace torch_lazy::lazy {

namespace {

// The thread's trace, which the next call may join.
const std::shared_ptr<Trace>& OpenTrace(RecordingLock* lock) {
  while (true) {
    const std::shared_ptr<Trace>& trace = NewestOfThread();
    const bool is_pending = trace != nullptr && trace->state == Trace::State::kPending;
    if (is_pending && !trace->ends_step) return trace;
    const std::shared_ptr<Trace> ended = is_pending ? trace : nullptr;
    lock->unlock();
    if (ended != nullptr) CutAndGoOn(ended, ended->what_ends());
    {
      const Locked alone(DeviceLock());
      ThreadTrace();  // another one
    }
    lock->lock();
  }
}

}  // namespace

Prediction::Prediction(const Op& op)
    : op_(op), lock_(/*alone=*/op.writes), trace_(OpenTrace(&lock_)), new_slots_(trace_->slots.size()) {
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
  const LazyStorageImpl::TouchesGuard nobody_touches(storage);
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
