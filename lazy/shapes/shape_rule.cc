// SPDX-License-Identifier: Apache-2.0
#include "lazy/shapes/shape_rule.h"

#include <algorithm>

#include <ATen/ExpandUtils.h>
#include <ATen/native/TypeProperties.h>

#include "lazy/shapes/elementwise_shape.h"

namespace torch_lazy::lazy {
namespace {

const c10::IValue* FirstArgument(const Op& op, const torch::jit::Stack& stack) {
  return stack.data() + (stack.size() - op.args.size());
}

at::Tensor TensorOf(const CallOperand& operand) {
  return at::Tensor(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(operand.tensor));
}

// The dtype that all operands are converted to.
at::ScalarType CommonType(const CallDescription& call) {
  at::native::ResultTypeState state = {};
  for (const CallOperand& operand : call.operands)
    state = at::native::update_result_type_state(TensorOf(operand), state);
  return at::native::result_type(state);
}

// In place, the sizes of all operands together are those of what is written. Operands of several dtypes give what they
// are converted to, or the rule fails its test.
bool Pointwise(const Op& op, const CallDescription& call, ShapeCall* question) {
  if (!op.pointwise || op.return_alias.size() != 1 || call.operands.empty()) return false;
  // Operators may refuse some numbers (softshrink's, for one), which their Meta kernels know.
  if (!call.numbers.empty() && !op.Has(kTakesAllNumbers)) return false;
  const caffe2::TypeMeta dtype = call.operands[0].tensor->dtype();
  at::DimVector sizes;
  bool is_mixed = false;
  for (const CallOperand& operand : call.operands) {
    if (operand.item >= 0) return false;
    is_mixed |= operand.tensor->dtype() != dtype;
    sizes = at::infer_size_dimvector(sizes, operand.tensor->sizes());
  }
  if (is_mixed && (!call.numbers.empty() || op.return_alias[0] >= 0)) return false;
  if (op.return_alias[0] < 0)
    return question->ReturnElementwise(op.Has(kBoolean) ? at::kBool
                                       : is_mixed       ? CommonType(call)
                                                        : c10::typeMetaToScalarType(dtype));
  const size_t written = static_cast<size_t>(op.return_alias[0]);
  return question->Tensor(written).sizes() == c10::IntArrayRef(sizes) && question->ReturnWritten(written);
}

}  // namespace

ShapeCall::ShapeCall(const Op& op, const CallDescription& call, const torch::jit::Stack& stack)
    : op_(op),
      call_(call),
      args_(FirstArgument(op, stack)),
      num_args_(op.args.size()),
      shape_(std::make_shared<CallShape>()) {}

bool ShapeCall::Has(size_t arg) const {
  const c10::IValue& value = args_[arg];
  return !value.isNone() && (!value.isTensor() || value.toTensor().defined());
}

std::vector<at::Tensor> ShapeCall::Tensors(size_t arg) const {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& item : args_[arg].toListRef())
    tensors.push_back(item.isTensor() ? item.toTensor() : at::Tensor());
  return tensors;
}

std::vector<bool> ShapeCall::Bools(size_t arg) const {
  const c10::List<bool> list = args_[arg].toBoolList();
  return {list.begin(), list.end()};
}

at::ScalarType ShapeCall::DType(size_t arg, at::ScalarType if_none) const {
  return Has(arg) ? args_[arg].toScalarType() : if_none;
}

int64_t ShapeCall::Dim(size_t arg, int64_t rank) const {
  const int64_t dim = Int(arg) < 0 ? Int(arg) + rank : Int(arg);
  return dim < 0 || dim >= rank ? -1 : dim;
}

ResultShape& ShapeCall::Next() {
  ResultShape& result = shape_->results.emplace_back();
  result.ret = static_cast<int16_t>(shape_->list_sizes.size());
  shape_->list_sizes.push_back(-1);
  return result;
}

bool ShapeCall::Return(c10::IntArrayRef sizes, at::ScalarType dtype) {
  c10::DimVector strides(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= std::max<int64_t>(sizes[d], 1);
  }
  return Return(sizes, strides, dtype);
}

bool ShapeCall::Return(c10::IntArrayRef sizes, c10::IntArrayRef strides, at::ScalarType dtype) {
  ResultShape& result = Next();
  result.geometry.dtype = dtype;
  result.geometry.sizes = sizes;
  result.geometry.strides = strides;
  result.size_bytes = SizeBytes(result.geometry);
  return true;
}

bool ShapeCall::Return(c10::IntArrayRef sizes, at::MemoryFormat format, at::ScalarType dtype) {
  if (format == at::MemoryFormat::ChannelsLast) return Return(sizes, c10::get_channels_last_strides_2d(sizes), dtype);
  if (format == at::MemoryFormat::ChannelsLast3d) return Return(sizes, c10::get_channels_last_strides_3d(sizes), dtype);
  return Return(sizes, dtype);
}

bool ShapeCall::ReturnLike(const at::Tensor& tensor) { return Return(tensor.sizes(), tensor.scalar_type()); }

bool ShapeCall::ReturnUndefined() {
  Next().defined = false;
  return true;
}

bool ShapeCall::ReturnWritten(size_t arg) {
  Next().arg = static_cast<int16_t>(arg);
  return true;
}

bool ShapeCall::ReturnElementwise(at::ScalarType dtype) {
  const at::Tensor output = IteratorOutput(op_, call_, /*in_place=*/false);
  return Return(output.sizes(), output.strides(), dtype);
}

std::shared_ptr<const CallShape> ShapeCall::Finish() {
  if (shape_->list_sizes.size() != op_.return_alias.size()) return nullptr;
  for (const ResultShape& result : shape_->results) {
    if (result.arg != op_.return_alias[result.ret]) return nullptr;
  }
  return std::move(shape_);
}

std::shared_ptr<const CallShape> RuledShape(const Op& op, const CallDescription& call, const torch::jit::Stack& stack) {
  ShapeCall question(op, call, stack);
  try {
    const bool says = op.shape_rule != nullptr ? op.shape_rule(question) : Pointwise(op, call, &question);
    return says ? question.Finish() : nullptr;
  } catch (const c10::Error&) {  // sizes that do not go together: the call itself raises what eager does
    return nullptr;
  }
}

bool IsTakenByRule(const Op& op, const CallDescription& call, const torch::jit::Stack& stack) {
  ShapeCall question(op, call, stack);
  try {
    return op.facts.row->shape(question);
  } catch (const c10::Error&) {
    return false;
  }
}

}  // namespace torch_lazy::lazy
