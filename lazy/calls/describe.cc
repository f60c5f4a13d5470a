// SPDX-License-Identifier: Apache-2.0
#include "lazy/calls/describe.h"

#include <algorithm>

#include "lazy/calls/describer.h"
#include "lazy/calls/refused_numbers.h"
#include "lazy/ops/call_settings.h"
#include "lazy/trace/trie.h"

namespace torch_lazy::lazy {
namespace {

// A 0-dim tensor on the host may be written before the trace runs; wrapped numbers cannot.
at::Tensor KeepTensor(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_privateuseone()) return at::Tensor();
  return tensor.unsafeGetTensorImpl()->is_wrapped_number() ? tensor : tensor.detach().clone();
}

c10::IValue KeepNumbers(const c10::IValue& value) {
  if (value.isTensor()) return KeepTensor(value.toTensor());
  c10::List<c10::IValue> list(value.toList().elementType());
  for (const c10::IValue& item : value.toListRef()) {
    list.push_back(item.isTensor() ? c10::IValue(KeepTensor(item.toTensor())) : item);
  }
  return list;
}

struct Writer {
  CallDescription& call;

  bool Word(int64_t word) { return call.words.push_back(word), true; }
  bool Words(at::IntArrayRef words) { return call.words.append(words.begin(), words.end()), true; }
  bool Operand(const CallOperand& operand) {
    if (call.operands.size() == kMostOperands) return false;
    call.operands.push_back(operand);
    call.offset_words.push_back(static_cast<int32_t>(call.words.size()) - 1);
    return true;
  }
  bool Number(size_t arg, c10::IValue value) {
    call.numbers.push_back({static_cast<int16_t>(arg), std::move(value)});
    return true;
  }
  bool HostNumber(size_t arg, const c10::IValue& value) { return Number(arg, KeepNumbers(value)); }
  bool Unrecordable() { return false; }
};

bool HasMask(const CallDescription& call) {
  return std::any_of(call.operands.begin(), call.operands.end(), [](const CallOperand& operand) {
    const at::ScalarType dtype = c10::typeMetaToScalarType(operand.tensor->dtype());
    return operand.item >= 0 && (dtype == at::kBool || dtype == at::kByte);
  });
}

}  // namespace

void Describe(const Op& op, const torch::jit::Stack& stack, CallDescription* call) {
  Writer writer{*call};
  Describer<Writer> describer(op, &writer);
  call->words.push_back(FirstWord(op));
  const c10::IValue* values = stack.data() + stack.size() - op.args.size();
  for (size_t i = 0; call->recordable && i < op.args.size(); ++i) call->recordable = describer.Boxed(i, values[i]);
  for (const CallNumber& number : call->numbers) {
    call->recordable = call->recordable && IsAccepted(number.value, op, call->operands);
  }
  if (op.dynamic_by_mask && HasMask(*call)) call->recordable = false;
}

}  // namespace torch_lazy::lazy
