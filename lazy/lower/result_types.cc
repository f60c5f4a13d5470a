// SPDX-License-Identifier: Apache-2.0
#include "lazy/lower/result_types.h"

#include <algorithm>

#include "lazy/shapes/meta_call.h"

namespace torch_lazy::lazy {
namespace {

// Of tensors of one type, masks, and numbers that the type holds, comes that type, since it is what is written.
bool KeepsType(const TrieNode& call, const Trace& trace) {
  if (call.op->Has(kBoolean)) return false;
  std::optional<at::ScalarType> type;
  for (const NodeOperand& operand : call.operands) {
    const at::ScalarType dtype = operand.geometry.dtype;
    if (dtype == at::kBool) continue;
    if (type.value_or(dtype) != dtype) return false;
    type = dtype;
  }
  if (!type || c10::isComplexType(*type)) return false;
  return std::all_of(call.number_args.begin(), call.number_args.end(), [&](int16_t arg) {
    const c10::IValue& number = trace.Argument(call, static_cast<size_t>(arg));
    return number.isInt() || number.isBool() || (number.isDouble() && at::isFloatingType(*type));
  });
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
