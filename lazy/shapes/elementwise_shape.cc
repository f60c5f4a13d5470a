// SPDX-License-Identifier: Apache-2.0
#include "lazy/shapes/elementwise_shape.h"

#include <algorithm>

#include <ATen/TensorIterator.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>

namespace torch_lazy::lazy {
namespace {

bool IsRealNumber(const c10::IValue& value) {
  if (!value.isTensor()) return value.isDouble() || value.isInt() || value.isBool();
  const at::Tensor& tensor = value.toTensor();
  return tensor.unsafeGetTensorImpl()->is_wrapped_number() && !tensor.is_complex();
}

// A truth value, which eager takes for a number here and refuses there.
bool IsTruth(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor().defined() && value.toTensor().scalar_type() == at::kBool;
  if (!value.isList()) return value.isBool();
  const auto list = value.toListRef();
  return std::any_of(list.begin(), list.end(), IsTruth);
}

bool IsKnownWord(const Op& op, const c10::IValue& value) {
  return op.facts.row != nullptr &&
         std::ranges::find(op.facts.row->words, value.toStringRef()) != op.facts.row->words.end();
}

// None may be an error (clamp without bounds), and a string may name a formula that there is not.
bool EagerTakesAll(const Op& op, const torch::jit::Stack& stack) {
  return std::all_of(stack.end() - static_cast<ptrdiff_t>(op.args.size()), stack.end(), [&](const c10::IValue& arg) {
    return !arg.isNone() && (!arg.isString() || IsKnownWord(op, arg));
  });
}

bool IsAsPlain(const Op& op, const CallDescription& call, const torch::jit::Stack& stack) {
  if (!IsPlainArithmetic(op, call) || op.return_alias.size() != 1 || op.return_alias[0] > 0 || call.operands.empty())
    return false;
  if (op.Has(kDenseResult)) return false;
  for (const CallOperand& operand : call.operands) {
    if (operand.tensor->dtype() != call.operands[0].tensor->dtype() || operand.item >= 0) return false;
    if (operand.written != (operand.arg == op.return_alias[0])) return false;
  }
  return std::all_of(call.numbers.begin(), call.numbers.end(),
                     [](const CallNumber& n) { return IsRealNumber(n.value); }) &&
         EagerTakesAll(op, stack);
}

at::Tensor MetaOf(const CallOperand& operand) {
  return MetaTensor(GeometryOf(
      at::TensorBase(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(operand.tensor))));
}

// How many numbers eager hands to its iterator as tensors without dimensions, which decides on the order of strides
// where a dimension has one element: those that are tensors already, and those of an overload that calls the one for
// tensors.
int NumWrapped(const Op& op, const CallDescription& call) {
  const c10::OperatorName& name = op.handle.operator_name();
  const bool wraps = name.overload_name == "Scalar" && !op.Has(kKeepsNumber) &&
                     c10::Dispatcher::singleton().findSchema({name.name, "Tensor"}).has_value();
  return static_cast<int>(std::count_if(call.numbers.begin(), call.numbers.end(), [&](const CallNumber& number) {
    return number.value.isTensor() || (wraps && number.arg == 1);
  }));
}

}  // namespace

at::Tensor IteratorOutput(const Op& op, const CallDescription& call, bool in_place) {
  std::vector<at::Tensor> tensors;
  for (const CallOperand& operand : call.operands) tensors.push_back(MetaOf(operand));
  if (op.Has(kSecondFirst)) std::swap(tensors[0], tensors[1]);
  for (int k = NumWrapped(op, call); k > 0; --k) tensors.push_back(at::empty({}, tensors[0].options()));
  at::TensorIteratorConfig config;
  config.check_all_same_dtype(false);
  const at::Tensor undefined;
  config.add_output(in_place ? tensors[0] : undefined);
  for (const at::Tensor& tensor : tensors) config.add_const_input(tensor);
  if (!in_place) config.declare_static_dtype_and_device(tensors[0].scalar_type(), c10::kMeta);
  at::TensorIterator iterator = config.build();
  return iterator.output();
}

bool IsPlainArithmetic(const Op& op, const CallDescription& call) {
  if (!op.is_lowered() || !op.pointwise || op.Has(kIntegersAlone)) return false;
  for (const CallOperand& operand : call.operands) {
    const at::ScalarType dtype = c10::typeMetaToScalarType(operand.tensor->dtype());
    if (dtype != at::kFloat && dtype != at::kDouble) return false;
  }
  return std::none_of(call.numbers.begin(), call.numbers.end(),
                      [](const CallNumber& number) { return IsTruth(number.value); });
}

std::shared_ptr<const CallShape> ElementwiseShape(const Op& op, const CallDescription& call,
                                                  const torch::jit::Stack& stack) {
  if (!IsAsPlain(op, call, stack)) return nullptr;
  const bool in_place = op.return_alias[0] == 0;
  const at::Tensor output = IteratorOutput(op, call, in_place);
  auto shape = std::make_shared<CallShape>();
  shape->list_sizes.push_back(-1);
  ResultShape& result = shape->results.emplace_back();
  if (in_place) {
    result.arg = 0;
    return shape;
  }
  result.geometry = GeometryOf(output);
  if (op.Has(kBoolean)) result.geometry.dtype = at::kBool;
  result.size_bytes = SizeBytes(result.geometry);
  return shape;
}

void CorrectStrides(const Op& op, const CallDescription& call, CallShape* shape) {
  if (!op.pointwise || call.operands.empty() || shape->results.size() != 1 || shape->results[0].arg >= 0) {
    return;
  }
  Geometry& geometry = shape->results[0].geometry;
  const at::Tensor output = op.Has(kDenseResult) ? at::empty(geometry.sizes, at::TensorOptions(c10::kMeta))
                                                 : IteratorOutput(op, call, /*in_place=*/false);
  geometry.strides = GeometryOf(output).strides;
}

}  // namespace torch_lazy::lazy
