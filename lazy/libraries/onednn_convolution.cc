// SPDX-License-Identifier: Apache-2.0
#include "lazy/libraries/onednn_convolution.h"

#include <utility>

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "lazy/eager/memory.h"

namespace torch_lazy::lazy {
namespace {

// ATen registers these only where it is built with oneDNN.
struct Operators {
  std::optional<c10::OperatorHandle> pack, convolve, add;
};

const Operators& OneDnn() {
  static const Operators* const operators = [] {
    const auto find = [](const char* name, const char* overload) {
      return c10::Dispatcher::singleton().findSchema({name, overload});
    };
    return new Operators{find("mkldnn::_reorder_convolution_weight", ""), find("mkldnn::_convolution_pointwise", ""),
                         find("mkldnn::_convolution_pointwise_", "binary")};
  }();
  return *operators;
}

at::Tensor Call(const c10::OperatorHandle& op, torch::jit::Stack stack) {
  op.callBoxed(stack);
  return stack[0].toTensor();
}

}  // namespace

bool HasOneDnnConvolutions() {
  const at::Context& context = at::globalContext();
  const at::Float32Precision precision = context.float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::CONV);
  const bool is_exact = precision == at::Float32Precision::NONE || precision == at::Float32Precision::IEEE;
  return is_exact && context.userEnabledMkldnn() && OneDnn().pack && OneDnn().convolve && OneDnn().add;
}

at::Tensor PackForOneDnn(const PackedConvolution::Form& form, const at::Tensor& weight) {
  return Call(*OneDnn().pack,
              {weight, form.padding, form.stride, form.dilation, form.groups, c10::IntArrayRef(form.x.sizes).vec()});
}

c10::Storage RunOneDnn(const PackedConvolution& convolution, const c10::Storage& x_content, const c10::Storage& sum) {
  const PackedConvolution::Form& form = convolution.form;
  const c10::IValue bias = convolution.bias.defined() ? c10::IValue(convolution.bias) : c10::IValue();
  const c10::List<std::optional<at::Scalar>> nothing;
  const at::Tensor images = Alias(x_content, form.x);
  if (sum) {
    Call(*OneDnn().add, {Alias(sum, form.result), images, convolution.packed_weight, bias, form.padding, form.stride,
                         form.dilation, form.groups, "add", at::Scalar(1.0), c10::IValue(), nothing, c10::IValue()});
    return sum;
  }
  PooledResults pooled;
  const at::Tensor made = Call(*OneDnn().convolve, {images, convolution.packed_weight, bias, form.padding, form.stride,
                                                    form.dilation, form.groups, "none", nothing, ""});
  return ContentOf(made, form.result);
}

}  // namespace torch_lazy::lazy
