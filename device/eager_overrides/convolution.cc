// SPDX-License-Identifier: Apache-2.0
// Convolutions as other devices' implementers see them, `convolution_overrideable`, by the CPU's convolution.
//
// `convolution` and its backward are recorded as they are; these arrive where a program calls `_convolution`.
#include <array>
#include <optional>
#include <vector>

#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>

#include "device/eager_overrides/kernels.h"
#include "device/eager_overrides/runner.h"
#include "device/eager_overrides/runners.h"
#include "lazy/ops/op.h"

namespace torch_lazy::device {
namespace {

using Ints = std::vector<int64_t>;

at::Tensor Convolution(at::Tensor input, at::Tensor weight, std::optional<at::Tensor> bias, Ints stride, Ints padding,
                       Ints dilation, bool transposed, Ints output_padding, int64_t groups) {
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
