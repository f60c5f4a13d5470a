// SPDX-License-Identifier: Apache-2.0
#include "lazy/advance.h"

#include "lazy/closing.h"
#include "lazy/noting.h"

namespace torch_lazy::lazy {
namespace {

// Weakly, without becoming an owner for a moment: the device lock is held (gil.h).
template <typename T>
auto WeakOf(T* target) {
  c10::raw::weak_intrusive_ptr::incref(target);
  return c10::weak_intrusive_ptr<T>::reclaim(target);
}

void Note(const CallOperand& operand, int32_t slot, Noting* noting) {
  noting->storages.push_back({slot, operand.storage->serial(), WeakOf<c10::StorageImpl>(operand.storage), WeakOf(operand.tensor)});
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
    touch.trace->heirs.push_back({touch.slot, trace, slot});
    trace->slots[slot].inherits = true;
    trace->slots[slot].older = true;
  }
}

void TouchOperands(c10::ArrayRef<CallOperand> operands, c10::ArrayRef<int32_t> slots, const std::shared_ptr<Trace>& trace) {
  for (size_t k = 0; k < operands.size(); ++k) {
    LazyStorageImpl* storage = operands[k].storage;
    if (static_cast<size_t>(slots[k]) == trace->slots.size()) {
      trace->slots.push_back({storage->content, storage, storage->nbytes(), /*external=*/true, /*written=*/false,
                              static_cast<uint32_t>(trace->path.size())});
      trace->slots.back().older = static_cast<bool>(storage->content);
      trace->slots.back().stamp = storage->stamp();
      ComeAfter(*storage, slots[k], trace);
      storage->touches.push_back({trace, slots[k]});
      if (trace->noting != nullptr) Note(operands[k], slots[k], trace->noting);
    }
    if (operands[k].written && !trace->slots[slots[k]].written) {
      ComeAfter(*storage, slots[k], trace);
      trace->slots[slots[k]].written = true;
      storage->writer = trace.get();
      ArmPlaceholder(storage);
    }
  }
}

at::Tensor NewResult(const ResultShape& shape, const std::shared_ptr<Trace>& trace) {
  if (!shape.defined) return at::Tensor();
  c10::Storage storage = MakeStorage(shape.size_bytes);
  LazyStorageImpl* lazy_storage = static_cast<LazyStorageImpl*>(storage.unsafeGetStorageImpl());
  lazy_storage->touches.push_back({trace, static_cast<int32_t>(trace->slots.size())});
  lazy_storage->writer = trace.get();
  trace->slots.push_back({c10::Storage(), lazy_storage, shape.size_bytes, /*external=*/false, /*written=*/true,
                          static_cast<uint32_t>(trace->path.size())});
  trace->new_bytes += static_cast<int64_t>(shape.size_bytes);
  const Geometry& g = shape.geometry;
  at::Tensor tensor = MakeTensor(std::move(storage), g.dtype, g.sizes, g.strides, g.offset);
  if (g.conj) tensor.unsafeGetTensorImpl()->_set_conj(true);
  if (g.neg) tensor.unsafeGetTensorImpl()->_set_neg(true);
  return tensor;
}

const char* StepTo(Expected* call, bool grown, Trace* trace) {
  trace->at = call;
  trace->path.push_back(call->node);
  return MustCut(trace, grown);
}

}  // namespace torch_lazy::lazy
