// SPDX-License-Identifier: Apache-2.0
// Convolutions, also as other devices' implementers see them: `convolution_overrideable` arrives where a program calls
// `_convolution`.
#include <array>
#include <optional>
#include <vector>

#include <ATen/Context.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/cudnn_convolution.h>

#include "device/eager_overrides/kernels.h"
#include "device/eager_overrides/runner.h"
#include "device/eager_overrides/runners.h"
#include "lazy/eager/result_place.h"
#include "lazy/ops/op.h"

namespace torch_lazy::device {
namespace {

using Ints = std::vector<int64_t>;

// One number for each of an image's dimensions.
Ints Expanded(const Ints& numbers, const at::Tensor& image) {
  return numbers.size() == 1 ? Ints(static_cast<size_t>(image.dim()) - 2, numbers[0]) : numbers;
}

// As ATen does, where it takes cuDNN: `result` is left there. False: ATen would do otherwise.
bool TryCudnn(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias, Ints stride,
              Ints padding, Ints dilation, bool transposed, const Ints& output_padding, int64_t groups,
              at::Tensor result) {
  if (!input.is_cuda() || input.dim() < 4 || input.dim() != weight.dim()) return false;
  stride = Expanded(stride, input), padding = Expanded(padding, input), dilation = Expanded(dilation, input);
  const bool has_bias = bias.has_value() && bias->defined();
  const c10::SymInt bias_size = has_bias ? bias->sym_numel() : c10::SymInt();
  const at::native::ConvBackend backend = at::native::select_conv_backend(
      input, weight, bias, c10::fromIntArrayRefSlow(stride), c10::fromIntArrayRefSlow(padding),
      c10::fromIntArrayRefSlow(dilation), transposed, c10::fromIntArrayRefSlow(output_padding), groups,
      has_bias ? at::OptionalSymIntArrayRef(bias_size) : std::nullopt);
  if (backend != at::native::ConvBackend::Cudnn) return false;
  const at::MemoryFormat format = at::native::_determine_backend_memory_format(input, weight, backend);
  if (!result.is_contiguous(format)) return false;
  const at::Context& context = at::globalContext();
  at::cudnn_convolution_out(result, input.contiguous(format), weight, padding, stride, dilation, groups,
                            context.benchmarkCuDNN(), context.deterministicCuDNN() || context.deterministicAlgorithms(),
                            context.allowTF32CuDNN(at::Float32Op::CONV));
  if (has_bias) {
    Ints per_channel(static_cast<size_t>(input.dim()), 1);
    per_channel[1] = -1;
    result.add_(bias->reshape(per_channel));
  }
  return true;
}

at::Tensor Convolution(at::Tensor input, at::Tensor weight, std::optional<at::Tensor> bias, Ints stride, Ints padding,
                       Ints dilation, bool transposed, Ints output_padding, int64_t groups) {
  const at::Tensor place = lazy::ResultPlace::Take();
  if (place.defined() &&
      TryCudnn(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, place))
    return place;
  return at::convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> ConvolutionBackward(at::Tensor grad, at::Tensor input, at::Tensor weight,
                                                                   Ints stride, Ints padding, Ints dilation,
                                                                   bool transposed, Ints output_padding, int64_t groups,
                                                                   std::array<bool, 3> wanted) {
  const Ints bias_sizes = {grad.size(1)};
  return at::convolution_backward(grad, input, weight, bias_sizes, stride, padding, dilation, transposed,
                                  output_padding, groups, wanted);
}

}  // namespace

void RunConvolution(torch::jit::Stack* stack) { Runner<Convolution>(stack); }
void RunConvolutionBackward(torch::jit::Stack* stack) { Runner<ConvolutionBackward>(stack); }

}  // namespace torch_lazy::device
