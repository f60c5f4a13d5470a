// SPDX-License-Identifier: Apache-2.0
#include "lazy/run/interpreter.h"

#include <c10/util/Exception.h>

#include "absl/strings/str_cat.h"
#include "lazy/eager/lanes.h"
#include "lazy/eager/memory.h"
#include "lazy/host/lock.h"
#include "lazy/host/source_line.h"
#include "lazy/run/run_on_aliases.h"
#include "lazy/trace/unwritten.h"

namespace torch_lazy::lazy {
namespace {

// The trie's own list is for every run.
c10::IValue CopyOfList(const c10::IValue& value) {
  if (value.isTensorList()) return value.toTensorList().copy();
  return value.toList().copy();
}

void PutOperands(const TrieNode& call, Trace* trace, std::vector<c10::IValue>* args) {
  for (const NodeOperand& operand : call.operands) {
    Trace::Slot& slot = trace->slots[operand.slot];
    if (!slot.content) slot.content = UnwrittenContent(slot.size_bytes, slot.unwritten);
    at::Tensor alias = Alias(slot.content, operand.geometry);
    c10::IValue& arg = (*args)[operand.arg];
    if (operand.item < 0) {
      arg = std::move(alias);
    } else if (arg.isTensorList()) {
      arg.toTensorList().set(operand.item, std::move(alias));
    } else {
      arg.toListRef();  // an optional tensor list is a generic list
      arg.toList().set(operand.item, std::move(alias));
    }
  }
}

// The content of a result must lie as the trace promised; ATen's result does, unless its kernel chose other strides
// than it did when the geometry was learned.
c10::Storage ContentOf(const at::Tensor& result, const ResultShape& shape) {
  if (result.storage_offset() == shape.geometry.offset && result.sizes() == shape.geometry.sizes &&
      result.strides() == shape.geometry.strides && result.storage().nbytes() >= shape.size_bytes) {
    return result.storage();
  }
  TORCH_INTERNAL_ASSERT(result.sizes() == shape.geometry.sizes, "lazy: result of sizes ", result.sizes(), " where ",
                        shape.geometry.sizes, " was recorded");
  c10::Storage content = NewContent(shape.size_bytes);
  Alias(content, shape.geometry).copy_(result);
  return content;
}

void RunCall(const TrieNode& call, Trace* trace) {
  std::vector<c10::IValue> stack;
  stack.reserve(call.op->args.size());
  for (size_t arg = 0; arg < call.op->args.size(); ++arg) {
    const c10::IValue& value = trace->Argument(call, arg);
    stack.push_back(value.isList() && call.op->args[arg].kind <= ArgKind::kOptionalTensorList ? CopyOfList(value)
                                                                                              : value);
  }
  PutOperands(call, trace, &stack);
  RunOnAliases(*call.op, &stack);
  int32_t slot = call.first_result_slot;
  for (const ResultShape& result : call.shape->results) {
    if (!result.defined || result.arg >= 0) continue;
    const c10::IValue& value = stack[result.ret];
    const at::Tensor tensor = result.item < 0 ? value.toTensor() : value.toListRef()[result.item].toTensor();
    trace->slots[slot++].content = ContentOf(tensor, result);
  }
}

// The operator, then for example: ", call 3 of 7, first made at train.py:33 in step".
std::string Where(const TrieNode& call, const Trace& trace) {
  std::shared_ptr<const SourceLine> line;
  {
    Locked lock(DeviceLock());
    line = call.line;
  }
  const std::string text = line == nullptr ? "" : TextsOf({*line})[0];
  const std::string number = trace.path.empty() ? "" : absl::StrCat(", call ", call.depth, " of ", trace.path.size());
  return absl::StrCat(call.op->name, number, text.empty() ? "" : ", first made at ", text);
}

}  // namespace

// An error keeps its type and its words, and says where the call was made: what is raised at a wait has nothing else to
// tell.
void InterpretCall(const TrieNode& call, Trace* trace) {
  try {
    RunCall(call, trace);
  } catch (c10::Error& error) {
    error.add_context(Where(call, *trace));
    throw;
  }
}

void Interpret(const CallSequence& calls, Trace* trace) {
  const MainWork main;
  const LeaveUnwritten unwritten;
  for (size_t k = 0; k < calls.calls().size(); ++k) {
    InterpretCall(*calls.calls()[k], trace);
    for (const int32_t slot : calls.EndAfter(k)) trace->slots[slot].content = c10::Storage();
  }
}

}  // namespace torch_lazy::lazy
