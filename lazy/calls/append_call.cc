// SPDX-License-Identifier: Apache-2.0
#include "lazy/calls/append_call.h"

#include <algorithm>
#include <mutex>

#include "lazy/trace/cut_rule.h"
#include "lazy/trace/new_slots.h"
#include "lazy/trace/replay_recorder.h"

namespace torch_lazy::lazy {
namespace {

// Weakly, without becoming an owner for a moment: the device lock is held (gil.h).
template <typename T>
auto WeakOf(T* target) {
  c10::raw::weak_intrusive_ptr::incref(target);
  return c10::weak_intrusive_ptr<T>::reclaim(target);
}

// If the storage is not a result of the calls that are recorded for replay.
void RecordTouch(const CallOperand& operand, int32_t slot, const Trace& trace, ReplayRecorder* recorder) {
  const Trace::Slot& at = trace.slots[slot];
  if (at.first_call >= recorder->first_call && !at.external) return;
  if (!recorder->seen.insert(slot).second) return;
  recorder->storages.push_back({slot, operand.storage->serial(), WeakOf<c10::StorageImpl>(operand.storage),
                                WeakOf(operand.tensor), VersionOf(operand.tensor)});
}

}  // namespace

std::shared_ptr<Trace> ConflictOver(const LazyStorageImpl& storage, bool written, const Trace* own) {
  for (const LazyStorageImpl::Touch& touch : storage.touches) {
    if (touch.trace.get() == own || touch.trace->RunsAhead()) continue;
    CheckNotFailed(*touch.trace);
    if (written || touch.trace.get() == storage.writer) return touch.trace;
  }
  return nullptr;
}

void ComeAfter(const LazyStorageImpl& storage, int32_t slot, const std::shared_ptr<Trace>& trace) {
  for (const LazyStorageImpl::Touch& touch : storage.touches) {
    if (touch.trace == trace || !touch.trace->RunsAhead()) continue;
    if (trace->after != touch.trace) trace->after = touch.trace;
    if (touch.trace.get() != storage.writer || trace->slots[slot].inherits) continue;
    {
      static auto* const heirs = new std::mutex;  // of traces of other threads, too
      std::unique_lock<std::mutex> nobody_inherits(*heirs, std::defer_lock);
      if (TraceLock::HaveSeveralThreads()) nobody_inherits.lock();
      touch.trace->heirs.push_back({touch.slot, trace, slot});
    }
    trace->slots[slot].inherits = true;
    if (trace->slots[slot].external) trace->slots[slot].older = true;  // as if that one were done: a result is new
  }
}

void AssignSlots(c10::ArrayRef<CallOperand> operands, const Trace& trace, c10::SmallVectorImpl<int32_t>* slots) {
  NewSlots new_slots(trace.slots.size());
  for (const CallOperand& operand : operands) {
    const int32_t slot = SlotOf(*operand.storage, &trace);
    slots->push_back(slot >= 0 ? slot : new_slots.Of(operand.storage));
  }
}

void TouchOperands(c10::ArrayRef<CallOperand> operands, c10::ArrayRef<int32_t> slots,
                   const std::shared_ptr<Trace>& trace) {
  for (size_t k = 0; k < operands.size(); ++k) {
    LazyStorageImpl* storage = operands[k].storage;
    if (static_cast<size_t>(slots[k]) == trace->slots.size()) {
      trace->slots.push_back({storage->content, storage, storage->nbytes(), /*external=*/true, /*written=*/false,
                              static_cast<uint32_t>(trace->path.size())});
      trace->slots.back().older = static_cast<bool>(storage->content);
      trace->slots.back().stamp = storage->stamp();
      trace->slots.back().unwritten = storage->unwritten;
      trace->slots.back().serial = storage->serial();
      const LazyStorageImpl::TouchesGuard nobody_touches(storage);
      ComeAfter(*storage, slots[k], trace);
      storage->JoinTrace(trace, slots[k]);
    }
    if (trace->recorder != nullptr) RecordTouch(operands[k], slots[k], *trace, trace->recorder);
    if (operands[k].written && !trace->slots[slots[k]].written) {
      ComeAfter(*storage, slots[k], trace);
      trace->slots[slots[k]].written = true;
      storage->writer = trace.get();
      storage->Arm();
    }
  }
}

void AddResult(LazyStorageImpl* storage, const std::shared_ptr<Trace>& trace) {
  const int32_t slot = static_cast<int32_t>(trace->slots.size());
  trace->slots.push_back({c10::Storage(), storage, storage->nbytes(), /*external=*/false, /*written=*/true,
                          static_cast<uint32_t>(trace->path.size())});
  trace->slots.back().serial = storage->serial();
  if (storage->content || !storage->touches.empty()) {  // one that was there before
    ComeAfter(*storage, slot, trace);
    storage->Arm();
  }
  storage->JoinTrace(trace, slot);
  storage->writer = trace.get();
  trace->new_bytes += static_cast<int64_t>(storage->nbytes());
}

at::Tensor NewResult(const ResultShape& shape, const std::shared_ptr<Trace>& trace) {
  if (!shape.defined) return at::Tensor();
  c10::Storage storage = MakeStorage(shape.size_bytes);
  AddResult(static_cast<LazyStorageImpl*>(storage.unsafeGetStorageImpl()), trace);
  const Geometry& g = shape.geometry;
  at::Tensor tensor = MakeTensor(std::move(storage), g.dtype, g.sizes, g.strides, g.offset);
  if (g.conj) tensor.unsafeGetTensorImpl()->_set_conj(true);
  if (g.neg) tensor.unsafeGetTensorImpl()->_set_neg(true);
  return tensor;
}

TrieNode* NodeLike(const TrieNode& like, c10::ArrayRef<int32_t> slots, Trace* trace, bool* grown) {
  TrieNode* const before = trace->at->node;
  TrieNode* node = before->Find(like.words(), slots);
  *grown = node == nullptr;
  if (!*grown) return node;
  const bool diverged = trace->divergence.now == nullptr;
  if (diverged) trace->divergence.known = before->Nearest(*like.op, like.words());
  node = before->Grow(*like.op, like.words(), slots, like.shape, trace->numbers.size());
  node->args = like.args;
  node->line = like.line;
  node->number_args = like.number_args;
  node->operands = like.operands;
  node->first_result_slot = static_cast<int32_t>(trace->slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    node->operands[i].slot = slots[i];
    node->first_result_slot = std::max(node->first_result_slot, slots[i] + 1);
  }
  if (diverged) trace->divergence.now = node;
  return node;
}

const char* StepTo(Expected* call, bool grown, Trace* trace) {
  trace->at = call;
  trace->path.push_back(call->node);
  return MustCut(trace, grown);
}

}  // namespace torch_lazy::lazy
