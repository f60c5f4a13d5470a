// SPDX-License-Identifier: Apache-2.0
#include "lazy/libraries/recorded_convolution.h"

#include <algorithm>

#include <c10/util/strides.h>

#include "lazy/libraries/convolutions.h"

namespace torch_lazy::lazy {
namespace {

Geometry ChannelsLast(at::ScalarType dtype, c10::IntArrayRef sizes) {
  const int64_t c = sizes[1], h = sizes[2], w = sizes[3];
  return {.dtype = dtype, .sizes = c10::DimVector(sizes), .strides = {h * w * c, 1, w * c, c}};
}

bool IsPlain(const Geometry& geometry, at::ScalarType dtype, size_t rank) {
  return geometry.dtype == dtype && geometry.sizes.size() == rank && !geometry.conj && !geometry.neg &&
         c10::multiply_integers(geometry.sizes) > 0;
}

bool IsPackable(at::ScalarType dtype) {
  return dtype == at::kFloat || (PacksForCudnn() && (dtype == at::kHalf || dtype == at::kBFloat16));
}

// Null if it is no convolution.
const ConvolutionArguments* ArgumentsOf(const TrieNode& call) {
  const Facts& facts = call.op->facts;
  return facts.row != nullptr && facts.form == RowForm::kNamed ? facts.row->convolution : nullptr;
}

const NodeOperand* OperandAt(const TrieNode& call, int arg) {
  for (const NodeOperand& operand : call.operands) {
    if (operand.arg == arg) return &operand;
  }
  return nullptr;
}

}  // namespace

std::optional<PackedConvolution::Form> PackedFormOf(const Trace& trace, const TrieNode& call) {
  constexpr size_t kImageRank = 4;
  const ConvolutionArguments* const args = ArgumentsOf(call);
  if (args == nullptr || trace.Argument(call, args->transposed).toBool()) return std::nullopt;
  const NodeOperand *x = OperandAt(call, args->image), *weight = OperandAt(call, args->weight),
                    *bias = OperandAt(call, args->bias);
  if (x == nullptr || weight == nullptr) return std::nullopt;
  const at::ScalarType dtype = x->geometry.dtype;
  if (!IsPackable(dtype) || !IsPlain(x->geometry, dtype, kImageRank) || !IsPlain(weight->geometry, dtype, kImageRank))
    return std::nullopt;
  if (bias != nullptr && !IsPlain(bias->geometry, dtype, 1)) return std::nullopt;
  const ResultShape& result = call.shape->results[0];
  if (!result.defined || result.arg >= 0 || !IsPlain(result.geometry, dtype, kImageRank)) return std::nullopt;
  PackedConvolution::Form form;
  const auto pair = [&](size_t arg) {
    std::vector<int64_t> numbers = trace.Argument(call, arg).toIntVector();
    if (numbers.size() == 1) numbers.push_back(numbers[0]);
    return numbers;
  };
  form.stride = pair(args->stride);
  form.padding = pair(args->padding);
  form.dilation = pair(args->dilation);
  form.groups = trace.Argument(call, args->groups).toInt();
  form.x = ChannelsLast(dtype, x->geometry.sizes);
  form.result = ChannelsLast(dtype, result.geometry.sizes);
  form.weight = ChannelsLast(dtype, weight->geometry.sizes);
  if (!PacksForCudnn()) form.weight.strides = c10::contiguous_strides(weight->geometry.sizes);
  return form;
}

bool AppendPacked(GraphWriter* writer, const TrieNode& call, size_t k, const PackedConvolution::Form& form) {
  ir::Builder& b = writer->builder();
  const Geometry& result = call.shape->results[0].geometry;
  if (!writer->CanWrite(call.first_result_slot, result)) return false;
  std::vector<ir::Value> operands;
  const ConvolutionArguments& args = *ArgumentsOf(call);
  for (const int arg : {args.image, args.weight, args.bias}) {
    const NodeOperand* operand = OperandAt(call, arg);
    if (operand == nullptr) continue;
    operands.push_back(writer->Read(operand->slot, operand->geometry));
    if (operands.back() == ir::kNoValue) return false;
  }
  const ir::Ints channels_last{0, 2, 3, 1};
  operands[0] = b.Permute(operands[0], channels_last);
  if (PacksForCudnn()) operands[1] = b.Permute(operands[1], channels_last);
  const c10::DimVector& sizes = form.result.sizes;
  const ir::Type type{b.type(operands[0]).dtype, writer->symbols().DimsOf({sizes[0], sizes[2], sizes[3], sizes[1]})};
  const ir::Value made = b.Call(kPackedConvolution, static_cast<int64_t>(k), operands, {type}, {-1})[0];
  writer->Write(call.first_result_slot, result, b.Permute(made, {0, 3, 1, 2}));
  return true;
}

}  // namespace torch_lazy::lazy
