// SPDX-License-Identifier: Apache-2.0
#include "lazy/elementwise_shape.h"

#include <ATen/TensorIterator.h>

namespace torch_lazy::lazy {
namespace {

bool IsRealNumber(const c10::IValue& value) {
  if (!value.isTensor()) return value.isDouble() || value.isInt() || value.isBool();
  const at::Tensor& tensor = value.toTensor();
  return tensor.unsafeGetTensorImpl()->is_wrapped_number() && !tensor.is_complex();
}

// None may be an error (clamp without bounds), and a string may name a formula that there is not.
bool HasOnlyTensorsAndNumbers(const Op& op, const torch::jit::Stack& stack) {
  for (auto arg = stack.end() - static_cast<ptrdiff_t>(op.args.size()); arg != stack.end(); ++arg) {
    if (arg->isNone() || arg->isString()) return false;
  }
  return true;
}

bool IsAsPlain(const Op& op, const CallDescription& call, const torch::jit::Stack& stack) {
  if (!IsPlainArithmetic(op, call) || op.return_alias.size() != 1 || op.return_alias[0] > 0 || call.operands.empty()) return false;
  for (const CallOperand& operand : call.operands) {
    if (operand.tensor->dtype() != call.operands[0].tensor->dtype() || operand.item >= 0) return false;
    if (operand.written != (operand.arg == op.return_alias[0])) return false;
  }
  return std::all_of(call.numbers.begin(), call.numbers.end(), [](const CallNumber& n) { return IsRealNumber(n.value); }) &&
         HasOnlyTensorsAndNumbers(op, stack);
}

at::Tensor MetaOf(const CallOperand& operand) {
  return MetaTensor(GeometryOf(at::TensorBase(
      c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(operand.tensor))));
}

}  // namespace

bool IsPlainArithmetic(const Op& op, const CallDescription& call) {
  if (op.row == nullptr || op.row->lower == nullptr || !op.handle.hasTag(at::Tag::pointwise)) return false;
  if (op.name.find("bitwise") != std::string::npos || op.name.find("shift") != std::string::npos) return false;
  for (const CallOperand& operand : call.operands) {
    const at::ScalarType dtype = c10::typeMetaToScalarType(operand.tensor->dtype());
    if (dtype != at::kFloat && dtype != at::kDouble) return false;
  }
  return true;
}

std::shared_ptr<const CallShape> ElementwiseShape(const Op& op, const CallDescription& call, const torch::jit::Stack& stack) {
  if (!IsAsPlain(op, call, stack)) return nullptr;
  std::vector<at::Tensor> tensors;
  for (const CallOperand& operand : call.operands) tensors.push_back(MetaOf(operand));
  const bool in_place = op.return_alias[0] == 0;
  at::Tensor undefined;
  at::TensorIteratorConfig config;
  config.add_output(in_place ? tensors[0] : undefined);
  for (const at::Tensor& tensor : tensors) config.add_const_input(tensor);
  at::TensorIterator iterator = config.build();
  auto shape = std::make_shared<CallShape>();
  shape->list_sizes.push_back(-1);
  ResultShape& result = shape->results.emplace_back();
  if (in_place) {
    result.arg = 0;
    return shape;
  }
  result.geometry = GeometryOf(iterator.output());
  if ((op.row->flags & kBoolean) != 0) result.geometry.dtype = at::kBool;
  result.size_bytes = SizeBytes(result.geometry);
  return shape;
}

}  // namespace torch_lazy::lazy
