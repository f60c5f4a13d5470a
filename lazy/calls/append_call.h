// SPDX-License-Identifier: Apache-2.0
// What recording a call does to the trace and to the storages, once its node of the trie is known.
//
// All of it under the device lock.
#pragma once

#include <memory>

#include "lazy/calls/call.h"
#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {

// The trace's slot of a storage, -1 if the trace does not know it.
inline int32_t SlotOf(const LazyStorageImpl& storage, const Trace* trace) {
  for (const LazyStorageImpl::Touch& touch : storage.touches) {
    if (touch.trace.get() == trace) return touch.slot;
  }
  return -1;
}

// Slots of the operands; a storage that the trace does not know gets the next number, which it keeps if the call is
// recorded.
void AssignSlots(c10::ArrayRef<CallOperand> operands, const Trace& trace, c10::SmallVectorImpl<int32_t>* slots);

// Gives the operands' storages to the trace, and marks the written ones.
void TouchOperands(c10::ArrayRef<CallOperand> operands, c10::ArrayRef<int32_t> slots,
                   const std::shared_ptr<Trace>& trace);

// A trace of another thread that must run before `own` may read, or write, the storage; null if there is none.
std::shared_ptr<Trace> ConflictOver(const LazyStorageImpl& storage, bool written, const Trace* own);

// The trace will run after those ahead that use the storage, and its slot inherits what one of them writes there.
void ComeAfter(const LazyStorageImpl& storage, int32_t slot, const std::shared_ptr<Trace>& trace);

// A tensor that the trace will write.
at::Tensor NewResult(const ResultShape& shape, const std::shared_ptr<Trace>& trace);

// The storage takes the next slot, as a result that the trace will write.
void AddResult(LazyStorageImpl* storage, const std::shared_ptr<Trace>& trace);

// The node of a call like `like` on these slots, if it comes next in the trace: grown if it was not known there.
TrieNode* NodeLike(const TrieNode& like, c10::ArrayRef<int32_t> slots, Trace* trace, bool* grown);

// The call is recorded. Returns the reason to cut now, or null.
const char* StepTo(Expected* call, bool grown, Trace* trace);

}  // namespace torch_lazy::lazy
