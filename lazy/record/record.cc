// SPDX-License-Identifier: Apache-2.0
#include "lazy/record/record.h"

#include <algorithm>

#include "base/log.h"
#include "base/metrics.h"
#include "lazy/calls/append_call.h"
#include "lazy/calls/call.h"
#include "lazy/calls/describe.h"
#include "lazy/calls/device_of_call.h"
#include "lazy/cuts/cut.h"
#include "lazy/eager/composite_tensors.h"
#include "lazy/eager/current_device.h"
#include "lazy/eager/eager_device.h"
#include "lazy/eager/on_host.h"
#include "lazy/ops/call_settings.h"
#include "lazy/ops/op.h"
#include "lazy/record/call_at_once.h"
#include "lazy/record/run_now.h"
#include "lazy/shapes/shapes.h"
#include "lazy/trace/replay_recorder.h"
#include "lazy/trace/storage.h"
#include "lazy/trace/thread_trace.h"
#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {
namespace {

// A trace of another thread that must run before this call can be recorded on `own`; null if there is none.
std::shared_ptr<Trace> Conflict(const CallDescription& call, const Trace* own) {
  for (const CallOperand& operand : call.operands) {
    if (std::shared_ptr<Trace> conflict = ConflictOver(*operand.storage, operand.written, own)) return conflict;
  }
  return nullptr;
}

// The argument as the trie keeps it, for every trace that takes this path: its structure.
c10::IValue Structure(const c10::IValue& value, const Arg& arg) {
  if (value.isNone() || arg.kind == ArgKind::kNumber || arg.kind == ArgKind::kNumberList) return c10::IValue();
  if (arg.kind == ArgKind::kTensor) return value.toTensor().defined() ? c10::IValue() : value;
  if (value.isDevice() && value.toDevice().is_privateuseone()) return EagerDevice();  // where the call will run
  if (arg.kind != ArgKind::kTensorList && arg.kind != ArgKind::kOptionalTensorList) return value;
  c10::List<c10::IValue> list(value.toList().elementType());
  for (const c10::IValue& item : value.toListRef()) list.push_back(item.isTensor() ? at::Tensor() : item);
  return list;
}

TrieNode* GrowNode(const Op& op, const CallDescription& call, const torch::jit::Stack& stack,
                   c10::ArrayRef<int32_t> slots, std::shared_ptr<const CallShape> shape, const Trace& trace) {
  TrieNode* node = trace.at->node->Grow(op, call.words, slots, std::move(shape), trace.numbers.size());
  const c10::IValue* args = stack.data() + stack.size() - op.args.size();
  node->args.reserve(op.args.size());
  node->number_args.reserve(call.numbers.size());
  node->operands.reserve(call.operands.size());
  for (size_t i = 0; i < op.args.size(); ++i) node->args.push_back(Structure(args[i], op.args[i]));
  for (const CallNumber& number : call.numbers) node->number_args.push_back(number.arg);
  node->first_result_slot = static_cast<int32_t>(trace.slots.size());
  for (const int32_t slot : slots) node->first_result_slot = std::max(node->first_result_slot, slot + 1);
  for (size_t k = 0; k < call.operands.size(); ++k) {
    const CallOperand& operand = call.operands[k];
    const at::TensorBase tensor(
        c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(operand.tensor));
    node->operands.push_back({slots[k], operand.item, operand.arg, operand.written, GeometryOf(tensor)});
  }
  return node;
}

// Replaces the arguments on the stack by the results. `made`: the new ones among them, in order. The device lock is not
// held: arguments end here (gil.h).
void ReturnResults(const Op& op, const CallShape& shape, std::vector<at::Tensor> made, torch::jit::Stack* stack) {
  size_t next = 0;
  const size_t first = stack->size() - op.args.size();
  c10::SmallVector<c10::IValue, 4> results(op.return_alias.size());
  for (size_t r = 0; r < results.size(); ++r) {
    if (shape.list_sizes[r] >= 0) results[r] = c10::List<at::Tensor>();
  }
  for (const ResultShape& result : shape.results) {
    if (result.arg >= 0) {
      results[result.ret] = (*stack)[first + result.arg];
    } else if (result.item >= 0) {
      results[result.ret].toTensorList().push_back(std::move(made[next++]));
    } else {
      results[result.ret] = std::move(made[next++]);
    }
  }
  stack->resize(first);
  for (c10::IValue& result : results) stack->push_back(std::move(result));
}

enum class Recorded { kYes, kNo, kConflict };

// What a recorded call returns.
struct Results {
  const CallShape* shape = nullptr;
  std::vector<at::Tensor> made;       // the new ones
  bool diverged = false;              // this is the trace's first call that was not known
  std::shared_ptr<SourceLine> asked;  // where the program is, for who has asked for it
  TrieNode* grown = nullptr;          // a node that is new
};

// For explain(): where the trace left the known ones.
void NoteDivergence() {
  SourceLine line = CurrentSourceLine();
  Locked lock(DeviceLock());
  const std::shared_ptr<Trace>& trace = ThreadTrace();
  if (trace->divergence.known != nullptr) trace->divergence.line = std::move(line);
}

void NoteLine(SourceLine* asked) {
  SourceLine line = CurrentSourceLine();
  Locked lock(DeviceLock());
  *asked = std::move(line);
}

// For the text of an error, if it fails when it runs.
void NoteLineOf(TrieNode* node) {
  auto line = std::make_shared<const SourceLine>(CurrentSourceLine());
  Locked lock(DeviceLock());
  node->line = std::move(line);
}

// One attempt under the lock. `shape` is needed only when the trie does not know the call; it is asked for outside the
// lock.
Recorded TryRecord(const Op& op, CallDescription& call, const std::shared_ptr<const CallShape>& shape,
                   const torch::jit::Stack& stack, Results* results, std::shared_ptr<Trace>* conflict,
                   const char** reason) {
  Locked lock(DeviceLock());
  const std::shared_ptr<Trace>& trace = RecordingTrace();
  const char* const unlike =
      trace->num_calls() != 0 ? UnlikeSettings(trace->settings(), SettingsOf(call.words[0])) : nullptr;
  *reason = trace->ends_step ? trace->what_ends() : unlike != nullptr ? unlike : "another thread";
  *conflict = trace->ends_step || unlike != nullptr ? trace : Conflict(call, trace.get());
  if (*conflict != nullptr) return Recorded::kConflict;
  c10::SmallVector<int32_t, 8> slots;
  AssignSlots(call.operands, *trace, &slots);
  TrieNode* node = trace->at->node->Find(call.words, slots);
  const bool grown = node == nullptr;
  if (grown) {
    if (shape == nullptr) return Recorded::kNo;
    results->diverged = trace->divergence.now == nullptr;
    if (results->diverged) trace->divergence.known = trace->at->node->Nearest(op, call.words);
    node = results->grown = GrowNode(op, call, stack, slots, shape, *trace);
  }
  results->asked = std::move(node->line_asked_for);
  TouchOperands(call.operands, slots, trace);
  for (CallNumber& number : call.numbers) trace->numbers.push_back(std::move(number.value));
  results->shape = node->shape.get();
  for (const ResultShape& result : node->shape->results) {
    if (result.arg < 0) results->made.push_back(NewResult(result, trace));
  }
  if (results->diverged) trace->divergence.now = node;
  *reason = StepTo(node->expected, grown, trace.get());
  return Recorded::kYes;
}

// What the thread's trace says of a call before it is looked at.
enum class Next { kRunsAtOnce, kIsUnknown, kMayBeKnown };

Next NextOfTrace(const Op& op) {
  Locked lock(DeviceLock());
  Trace* const trace = ThreadTrace().get();
  if (RunsAtOnce(op, trace)) {
    TellAtOnce(op, trace);
    return Next::kRunsAtOnce;
  }
  return trace->at->node->children.empty() ? Next::kIsUnknown : Next::kMayBeKnown;
}

bool Record(const Op& op, CallDescription& call, bool asked, torch::jit::Stack* stack) {
  std::shared_ptr<const CallShape> shape = asked ? ShapeOfCall(op, call, *stack) : nullptr;
  while (true) {
    Results results;
    std::shared_ptr<Trace> conflict;
    const char* reason = nullptr;  // to cut: the conflicting trace before the call, else this one after it
    switch (TryRecord(op, call, shape, *stack, &results, &conflict, &reason)) {
      case Recorded::kYes:
        ReturnResults(op, *results.shape, std::move(results.made), stack);
        if (results.diverged) NoteDivergence();
        if (results.asked != nullptr) NoteLine(results.asked.get());
        if (results.grown != nullptr && op.may_fail()) NoteLineOf(results.grown);
        if (reason != nullptr) CutThreadTraceAndGoOn(reason);
        return true;
      case Recorded::kConflict:
        CutAndGoOn(conflict, reason);
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

// A copy of a host's tensor, on the current device.
at::Tensor MoveFromHost(const at::Tensor& tensor) {
  if (!IsOnHost()) return tensor.to(at::Device(at::kPrivateUse1, static_cast<c10::DeviceIndex>(CurrentDevice())));
  const at::Tensor copy = tensor.clone(at::MemoryFormat::Contiguous);
  return MakeTensor(MakeStorage(copy.storage(), /*exposed=*/false), copy.scalar_type(), copy.sizes(), copy.strides());
}

// True if the call would have to wait for what is recorded, or runs, if it ran at once.
bool NeedsPendingWork(const Op& op, const c10::IValue* args) {
  const Locked lock(DeviceLock());
  for (size_t i = 0; i < op.args.size(); ++i) {
    const bool written = op.args[i].written;
    const auto is_pending = [written](const c10::IValue& value) {
      const LazyStorageImpl* storage = value.isTensor() ? LazyStorageImpl::Of(value.toTensor()) : nullptr;
      return storage != nullptr && (storage->writer != nullptr || (written && !storage->touches.empty()));
    };
    if (args[i].isList() ? std::ranges::any_of(args[i].toListRef(), is_pending) : is_pending(args[i])) return true;
  }
  return false;
}

// Integer indices on the host become the device's, as eager devices move them: a call of tensors of two devices could
// not be recorded. Not in a function for replay, which would keep the first call's indices; nor on the host where the
// call runs at once without a wait, which takes less.
void MoveIndicesFromHost(const Op& op, torch::jit::Stack* stack) {
  if (!op.Has(kTakesHostTensors) || CurrentReplayRecorder() != nullptr) return;
  const auto is_moved = [](const c10::IValue& item) {
    if (!item.isTensor() || !item.toTensor().defined()) return false;
    const at::Tensor& index = item.toTensor();
    return index.is_cpu() && index.dim() != 0 && IsDense(index) &&
           (index.scalar_type() == at::kLong || index.scalar_type() == at::kInt);
  };
  c10::IValue* const args = stack->data() + stack->size() - op.args.size();
  for (size_t i = 0; i < op.args.size(); ++i) {
    if (op.args[i].kind != ArgKind::kOptionalTensorList || std::ranges::none_of(args[i].toListRef(), is_moved))
      continue;
    if (IsOnHost() && !NeedsPendingWork(op, args)) return;
    c10::List<c10::IValue> moved(args[i].toList().elementType());
    for (const c10::IValue& item : args[i].toListRef()) {
      moved.push_back(is_moved(item) ? MoveFromHost(item.toTensor()) : item);
    }
    args[i] = std::move(moved);
  }
}

void RecordOrRun(const Op& op, torch::jit::Stack* stack) {
  base::Count(base::Counter::kCallsTotal);
  CallDescription call;
  const Next next = NextOfTrace(op);
  const bool is_recorded = !op.immediate && next != Next::kRunsAtOnce;
  if (is_recorded) {
    Describe(op, *stack, &call);
    for (const CallOperand& operand : call.operands) {
      if (operand.storage->IsSwapped()) operand.storage->TakeSwapped();
    }
    if (call.recordable && Record(op, call, next == Next::kIsUnknown, stack)) return;
  }
  LAZY_LOG(1, "at once: ", op.name);
  base::Count(base::Counter::kCallsImmediate);
  op.num_at_once.fetch_add(1, std::memory_order_relaxed);
  if (next == Next::kRunsAtOnce && RunShort(op, stack)) return;
  std::optional<Lesson> lesson;
  if (is_recorded && call.recordable && !HasNoShape(call)) lesson.emplace(op, call, *stack);
  std::shared_ptr<const CallShape> shape = RunNow(op, stack, lesson ? kUnknownShape : "immediate", lesson.has_value());
  if (!lesson) return;
  lesson->Learn(std::move(shape));
  Locked lock(DeviceLock());
  ThreadTrace()->fragment = true;
}

}  // namespace

void Call(const Op& op, torch::jit::Stack* stack) {
  const OnDevice on(DeviceOfCall(c10::ArrayRef<c10::IValue>(*stack).slice(stack->size() - op.args.size())));
  std::vector<at::Tensor> updated;
  if (op.updates_list) updated = (*stack)[stack->size() - op.args.size()].toTensorVector();
  MoveIndicesFromHost(op, stack);
  RecordOrRun(op, stack);
  CountWrites(updated);
}

}  // namespace torch_lazy::lazy
