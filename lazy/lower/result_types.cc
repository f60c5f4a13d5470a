// SPDX-License-Identifier: Apache-2.0
#include "lazy/lower/result_types.h"

#include "lazy/shapes/meta_call.h"

namespace torch_lazy::lazy {
namespace {

// Of tensors of one floating type, and numbers, comes that type.
bool KeepsType(const TrieNode& call, const Trace& trace) {
  if (call.op->Has(kBoolean)) return false;
  for (const NodeOperand& operand : call.operands) {
    if (!at::isFloatingType(operand.geometry.dtype) || operand.geometry.dtype != call.operands[0].geometry.dtype)
      return false;
  }
  for (const int16_t arg : call.number_args) {
    const c10::IValue& number = trace.Argument(call, static_cast<size_t>(arg));
    if (!number.isDouble() && !number.isInt() && !number.isBool()) return false;
  }
  return true;
}

std::optional<c10::OperatorHandle> FunctionalForm(const Op& op) {
  if (op.facts.row == nullptr || op.facts.form == RowForm::kNamed) return std::nullopt;
  const std::string name = op.facts.row->name;
  const size_t dot = name.find('.');
  const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
  const auto handle = c10::Dispatcher::singleton().findSchema({name.substr(0, dot), overload});
  if (!handle || !handle->hasKernelForDispatchKey(c10::DispatchKey::Meta)) return std::nullopt;
  return handle;
}

}  // namespace

std::vector<std::optional<at::ScalarType>> FunctionalDTypes(const TrieNode& call, const Trace& trace) {
  const auto functional = FunctionalForm(*call.op);
  if (!functional || KeepsType(call, trace)) return {};
  torch::jit::Stack stack;
  for (size_t arg = 0; arg < functional->schema().arguments().size(); ++arg) stack.push_back(trace.Argument(call, arg));
  for (const NodeOperand& operand : call.operands) {
    if (operand.item >= 0) return {};  // lists: elementwise over tensors of one dtype
    if (static_cast<size_t>(operand.arg) < stack.size()) stack[operand.arg] = MetaTensor(operand.geometry);
  }
  CallMeta(*functional, &stack);
  std::vector<std::optional<at::ScalarType>> dtypes;
  for (const c10::IValue& value : stack) {
    dtypes.push_back(value.isTensor() && value.toTensor().defined() ? std::make_optional(value.toTensor().scalar_type())
                                                                    : std::nullopt);
  }
  return dtypes;
}

}  // namespace torch_lazy::lazy
