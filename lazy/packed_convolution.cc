// SPDX-License-Identifier: Apache-2.0
#include "lazy/packed_convolution.h"

#include <utility>

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/strides.h>

#include "base/metrics.h"
#include "lazy/graph_writer.h"
#include "lazy/memory.h"

namespace torch_lazy::lazy {
namespace {

// ATen registers these only where it is built with oneDNN.
struct Operators {
  std::optional<c10::OperatorHandle> pack, convolve, add;
};

const Operators& OneDnn() {
  static const Operators* const operators = [] {
    const auto find = [](const char* name, const char* overload) { return c10::Dispatcher::singleton().findSchema({name, overload}); };
    return new Operators{find("mkldnn::_reorder_convolution_weight", ""), find("mkldnn::_convolution_pointwise", ""),
                         find("mkldnn::_convolution_pointwise_", "binary")};
  }();
  return *operators;
}

at::Tensor Call(const c10::OperatorHandle& op, torch::jit::Stack stack) {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  op.callBoxed(stack);
  return stack[0].toTensor();
}

Geometry ChannelsLast(c10::IntArrayRef sizes) {
  const int64_t c = sizes[1], h = sizes[2], w = sizes[3];
  return {.dtype = at::kFloat, .sizes = c10::DimVector(sizes), .strides = {h * w * c, 1, w * c, c}};
}

bool IsPlain(const Geometry& geometry, size_t rank) {
  return geometry.dtype == at::kFloat && geometry.sizes.size() == rank && !geometry.conj && !geometry.neg &&
         c10::multiply_integers(geometry.sizes) > 0;
}

const NodeOperand* OperandAt(const TrieNode& call, int arg) {
  for (const NodeOperand& operand : call.operands) {
    if (operand.arg == arg) return &operand;
  }
  return nullptr;
}

}  // namespace

void PackedConvolution::Pack(const c10::Storage& weight_content, const c10::Storage& bias_content) {
  base::Count(base::Counter::kWeightsPacked);
  packed_weight = Call(*OneDnn().pack, {Alias(weight_content, form.weight), form.padding, form.stride, form.dilation,
                                          form.groups, c10::IntArrayRef(form.x.sizes).vec()});
  bias = bias_content ? Alias(bias_content, {.dtype = at::kFloat, .sizes = {form.weight.sizes[0]}, .strides = {1}}) : at::Tensor();
}

c10::Storage PackedConvolution::Run(const c10::Storage& x_content, const c10::Storage& sum) const {
  base::Count(base::Counter::kLibraryCalls);
  const c10::IValue optional_bias = bias.defined() ? c10::IValue(bias) : c10::IValue();
  const c10::List<std::optional<at::Scalar>> nothing;
  const at::Tensor images = Alias(x_content, form.x);
  if (sum) {
    Call(*OneDnn().add, {Alias(sum, form.result), images, packed_weight, optional_bias, form.padding, form.stride, form.dilation,
                         form.groups, "add", at::Scalar(1.0), c10::IValue(), nothing, c10::IValue()});
    return sum;
  }
  PooledResults pooled;
  const at::Tensor made =
      Call(*OneDnn().convolve, {images, packed_weight, optional_bias, form.padding, form.stride, form.dilation,
                                form.groups, "none", nothing, ""});
  c10::Storage content = made.storage();
  if (made.storage_offset() != 0 || !made.is_contiguous(at::MemoryFormat::ChannelsLast)) {
    content = NewContent(SizeBytes(form.result));
    Alias(content, form.result).copy_(made);
  }
  return content;
}

bool CanPackConvolutions() {
  const at::Context& context = at::globalContext();
  const at::Float32Precision precision = context.float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::CONV);
  const bool is_exact = precision == at::Float32Precision::NONE || precision == at::Float32Precision::IEEE;
  return is_exact && context.userEnabledMkldnn() && OneDnn().pack && OneDnn().convolve && OneDnn().add;
}

// aten::convolution(input, weight, bias?, stride, padding, dilation, transposed, output_padding, groups)
std::optional<PackedConvolution::Form> PackedFormOf(const Trace& trace, const TrieNode& call) {
  constexpr size_t kImageRank = 4;
  if (call.op->name != "aten::convolution" || trace.Argument(call, 6).toBool()) return std::nullopt;
  const NodeOperand *x = OperandAt(call, 0), *weight = OperandAt(call, 1), *bias = OperandAt(call, 2);
  if (x == nullptr || weight == nullptr || !IsPlain(x->geometry, kImageRank) || !IsPlain(weight->geometry, kImageRank)) {
    return std::nullopt;
  }
  if (bias != nullptr && !IsPlain(bias->geometry, 1)) return std::nullopt;
  const ResultShape& result = call.shape->results[0];
  if (!result.defined || result.arg >= 0 || !IsPlain(result.geometry, kImageRank)) return std::nullopt;
  PackedConvolution::Form form;
  const auto pair = [&](size_t arg) {
    std::vector<int64_t> numbers = trace.Argument(call, arg).toIntVector();
    if (numbers.size() == 1) numbers.push_back(numbers[0]);
    return numbers;
  };
  form.stride = pair(3);
  form.padding = pair(4);
  form.dilation = pair(5);
  form.groups = trace.Argument(call, 8).toInt();
  form.x = ChannelsLast(x->geometry.sizes);
  form.result = ChannelsLast(result.geometry.sizes);
  form.weight = {.dtype = at::kFloat, .sizes = weight->geometry.sizes, .strides = c10::contiguous_strides(weight->geometry.sizes)};
  return form;
}

bool AppendPacked(GraphWriter* writer, const TrieNode& call, size_t k, const PackedConvolution::Form& form) {
  ir::Builder& b = writer->builder();
  const Geometry& result = call.shape->results[0].geometry;
  if (!writer->CanWrite(call.first_result_slot, result)) return false;
  std::vector<ir::Value> operands;
  for (int arg = 0; arg < 3; ++arg) {
    const NodeOperand* operand = OperandAt(call, arg);
    if (operand == nullptr) continue;
    operands.push_back(writer->Read(operand->slot, operand->geometry));
    if (operands.back() == ir::kNoValue) return false;
  }
  operands[0] = b.Permute(operands[0], {0, 2, 3, 1});
  const c10::DimVector& sizes = form.result.sizes;
  const ir::Type type{ir::DType::kF32, writer->symbols().DimsOf({sizes[0], sizes[2], sizes[3], sizes[1]})};
  const ir::Value made = b.Call(kPackedConvolution, static_cast<int64_t>(k), operands, {type}, {-1})[0];
  writer->Write(call.first_result_slot, result, b.Permute(made, {0, 3, 1, 2}));
  return true;
}

}  // namespace torch_lazy::lazy
