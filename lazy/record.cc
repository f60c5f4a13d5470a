// SPDX-License-Identifier: Apache-2.0
// One recording step: describe the call, find or grow its node, make its results.
#include <c10/core/AutogradState.h>

#include "base/log.h"
#include "base/metrics.h"
#include "lazy/call.h"
#include "lazy/closing.h"
#include "lazy/op.h"
#include "lazy/run_call.h"
#include "lazy/shapes.h"
#include "lazy/trace.h"

namespace torch_lazy::lazy {
namespace {

// Backward runs on the caller's thread: handing each autograd node to another thread costs more than recording it, and a
// trace belongs to one thread. A user may switch it on again.
void PrepareThread() {
  thread_local const bool prepared = [] {
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
    return true;
  }();
  (void)prepared;
}

// A trace of another thread that must run before this call can be recorded on `own`; null if there is none.
std::shared_ptr<Trace> Conflict(const CallDescription& call, const Trace* own) {
  for (const CallOperand& operand : call.operands) {
    LazyStorageImpl* storage = operand.storage;
    if (storage->writer != nullptr && storage->writer.get() != own) return storage->writer;
    if (!operand.written) continue;
    for (const LazyStorageImpl::Touch& touch : storage->touches) {
      if (touch.trace.get() != own) return touch.trace;
    }
  }
  return nullptr;
}

int32_t SlotOf(const LazyStorageImpl& storage, const Trace* trace) {
  for (const LazyStorageImpl::Touch& touch : storage.touches) {
    if (touch.trace.get() == trace) return touch.slot;
  }
  return -1;
}

// Slots of the operands; a storage that the trace does not know gets the next number, which it keeps if the call is recorded.
void AssignSlots(const CallDescription& call, const Trace& trace, c10::SmallVectorImpl<int32_t>* slots) {
  int32_t next = static_cast<int32_t>(trace.slots.size());
  for (size_t k = 0; k < call.operands.size(); ++k) {
    int32_t slot = SlotOf(*call.operands[k].storage, &trace);
    for (size_t j = 0; slot < 0 && j < k; ++j) {
      if (call.operands[j].storage == call.operands[k].storage) slot = (*slots)[j];
    }
    slots->push_back(slot >= 0 ? slot : next++);
  }
}

TrieNode* GrowNode(const Op& op, const CallDescription& call, c10::ArrayRef<int32_t> slots, int32_t first_result_slot,
                   std::shared_ptr<const CallShape> shape, TrieNode* parent) {
  TrieNode* node = parent->Grow(op, call.words, slots);
  node->shape = std::move(shape);
  node->first_result_slot = first_result_slot;
  for (size_t k = 0; k < call.operands.size(); ++k) {
    const CallOperand& operand = call.operands[k];
    const at::TensorBase tensor(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(operand.tensor));
    node->operands.push_back({slots[k], operand.arg, operand.item, operand.written, GeometryOf(tensor)});
  }
  return node;
}

void TouchOperands(const CallDescription& call, c10::ArrayRef<int32_t> slots, const std::shared_ptr<Trace>& trace) {
  for (size_t k = 0; k < call.operands.size(); ++k) {
    LazyStorageImpl* storage = call.operands[k].storage;
    if (static_cast<size_t>(slots[k]) == trace->slots.size()) {
      trace->slots.push_back({storage->content, storage, storage->nbytes(), /*external=*/true, /*written=*/false,
                              static_cast<uint32_t>(trace->path.size())});
      storage->touches.push_back({trace, slots[k]});
    }
    if (call.operands[k].written && !trace->slots[slots[k]].written) {
      trace->slots[slots[k]].written = true;
      storage->writer = trace;
      ArmPlaceholder(storage);
    }
  }
}

// The argument as the trace keeps it: nothing that autograd counts.
c10::IValue Keep(c10::IValue&& value, const Arg& arg) {
  if (arg.kind == ArgKind::kTensor) {
    if (!value.isTensor() || !value.toTensor().defined()) return std::move(value);
    if (value.toTensor().is_privateuseone()) return c10::IValue();
    const at::Tensor& number = value.toTensor();
    return number.unsafeGetTensorImpl()->is_wrapped_number() ? std::move(value) : c10::IValue(number.detach().clone());
  }
  if (value.isDevice() && value.toDevice().is_privateuseone()) return c10::Device(c10::kCPU);  // where the call will run
  if (arg.kind != ArgKind::kTensorList && arg.kind != ArgKind::kOptionalTensorList) return std::move(value);
  if (!value.isList()) return std::move(value);
  c10::List<c10::IValue> list(value.toList().elementType());
  for (const c10::IValue& item : value.toListRef()) {
    const bool empty = !item.isTensor() || !item.toTensor().defined();
    if (empty) list.push_back(item);
    else if (item.toTensor().is_privateuseone()) list.push_back(at::Tensor());
    else list.push_back(item.toTensor().detach().clone());
  }
  return list;
}

at::Tensor NewResult(const ResultShape& shape, const std::shared_ptr<Trace>& trace) {
  c10::Storage storage = MakeStorage(shape.size_bytes);
  LazyStorageImpl* lazy_storage = static_cast<LazyStorageImpl*>(storage.unsafeGetStorageImpl());
  lazy_storage->touches.push_back({trace, static_cast<int32_t>(trace->slots.size())});
  lazy_storage->writer = trace;
  trace->slots.push_back({c10::Storage(), lazy_storage, shape.size_bytes, /*external=*/false, /*written=*/true,
                          static_cast<uint32_t>(trace->path.size())});
  trace->new_bytes += static_cast<int64_t>(shape.size_bytes);
  const Geometry& g = shape.geometry;
  at::Tensor tensor = MakeTensor(std::move(storage), g.dtype, g.sizes, g.strides, g.offset);
  if (g.conj) tensor.unsafeGetTensorImpl()->_set_conj(true);
  if (g.neg) tensor.unsafeGetTensorImpl()->_set_neg(true);
  return tensor;
}

// Takes the arguments off the stack into the trace, and pushes the results.
void FinishCall(const Op& op, const CallShape& shape, const std::shared_ptr<Trace>& trace, torch::jit::Stack* stack) {
  const size_t first = stack->size() - op.args.size();
  c10::SmallVector<c10::IValue, 4> results(op.return_alias.size());
  for (size_t r = 0; r < results.size(); ++r) {
    if (shape.list_sizes[r] >= 0) results[r] = c10::List<at::Tensor>();
  }
  for (const ResultShape& result : shape.results) {
    if (result.arg >= 0) {
      results[result.ret] = (*stack)[first + result.arg];
    } else if (result.item >= 0) {
      results[result.ret].toTensorList().push_back(result.defined ? NewResult(result, trace) : at::Tensor());
    } else {
      results[result.ret] = result.defined ? NewResult(result, trace) : at::Tensor();
    }
  }
  trace->arg_begin.push_back(static_cast<uint32_t>(trace->args.size()));
  for (size_t i = 0; i < op.args.size(); ++i) trace->args.push_back(Keep(std::move((*stack)[first + i]), op.args[i]));
  stack->resize(first);
  for (c10::IValue& result : results) stack->push_back(std::move(result));
}

enum class Recorded { kYes, kNo, kConflict };

// One attempt under the lock. `shape` is needed only when the trie does not know the call; it is asked for outside the lock.
Recorded TryRecord(const Op& op, const CallDescription& call, const std::shared_ptr<const CallShape>& shape,
                   torch::jit::Stack* stack, std::shared_ptr<Trace>* conflict, const char** full) {
  Locked lock(DeviceLock());
  std::shared_ptr<Trace>& trace = ThreadTrace();
  *conflict = Conflict(call, trace.get());
  if (*conflict != nullptr) return Recorded::kConflict;
  c10::SmallVector<int32_t, 8> slots;
  AssignSlots(call, *trace, &slots);
  TrieNode* node = trace->at->Find(call.words, slots);
  const bool grown = node == nullptr;
  if (grown) {
    if (shape == nullptr) return Recorded::kNo;
    int32_t end = static_cast<int32_t>(trace->slots.size());
    for (const int32_t slot : slots) end = std::max(end, slot + 1);
    node = GrowNode(op, call, slots, end, shape, trace->at);
  }
  TouchOperands(call, slots, trace);
  FinishCall(op, *node->shape, trace, stack);
  trace->at = node;
  trace->path.push_back(node);
  *full = MustCut(trace.get(), grown);
  return Recorded::kYes;
}

bool Record(const Op& op, const CallDescription& call, torch::jit::Stack* stack) {
  std::shared_ptr<const CallShape> shape;
  bool asked = false;
  while (true) {
    std::shared_ptr<Trace> conflict;
    const char* full = nullptr;
    switch (TryRecord(op, call, shape, stack, &conflict, &full)) {
      case Recorded::kYes:
        if (full != nullptr) CutThreadTrace(full);
        return true;
      case Recorded::kConflict:
        CutAndRun(conflict, "another thread");
        break;
      case Recorded::kNo:
        if (asked) return false;
        shape = ShapeOfCall(op, call, *stack);
        asked = true;
        if (shape == nullptr) return false;
        break;
    }
  }
}

}  // namespace

void Call(const Op& op, torch::jit::Stack* stack) {
  PrepareThread();
  base::Count(base::Counter::kCallsTotal);
  CallDescription call;
  if (!op.immediate) {
    Describe(op, *stack, &call);
    if (call.recordable && Record(op, call, stack)) return;
  }
  LAZY_LOG(1, "at once: ", op.name);
  base::Count(base::Counter::kCallsImmediate);
  base::Count(base::Tally::kCallsImmediateByOp, op.name);
  const bool learn = !op.immediate && call.recordable;
  std::vector<int64_t> proof;
  if (learn) proof = ProofOf(op, call);  // before the run, which gives the operands away
  std::shared_ptr<const CallShape> shape = RunNow(op, stack, "immediate");
  if (learn) Learn(call, std::move(proof), std::move(shape));
}

}  // namespace torch_lazy::lazy
