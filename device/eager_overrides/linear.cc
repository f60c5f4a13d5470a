// SPDX-License-Identifier: Apache-2.0
// `linear` is recorded whole; its backward has no kernel on the CPU.
#include <array>

#include <ATen/core/Tensor.h>
#include <ATen/ops/linear_native.h>
#include <c10/core/GradMode.h>

#include "device/eager_overrides/kernels.h"
#include "device/eager_overrides/runner.h"
#include "device/eager_overrides/runners.h"
#include "device/eager_overrides/whole_or_parts.h"
#include "lazy/ops/op.h"

namespace torch_lazy::device {
namespace {

// One may have no elements.
at::Tensor AsRows(const at::Tensor& tensor) { return tensor.dim() == 1 ? tensor.unsqueeze(0) : tensor.flatten(0, -2); }

// The products that eager's derivative of addmm takes, operand order included, so that the digits are the same.
std::tuple<at::Tensor, at::Tensor, at::Tensor> LinearBackward(at::Tensor input, at::Tensor grad, at::Tensor weight,
                                                              std::array<bool, 3> wanted) {
  const at::Tensor rows = AsRows(input), grad_rows = AsRows(grad);
  at::Tensor grad_input, grad_weight, grad_bias;
  if (wanted[0]) grad_input = grad_rows.mm(weight.conj()).reshape(input.sizes());
  if (wanted[1]) grad_weight = grad_rows.t().mm(rows.conj());
  if (wanted[2]) grad_bias = grad_rows.sum(0);
  return {grad_input, grad_weight, grad_bias};
}

at::Tensor Linear(at::Tensor input, at::Tensor weight, std::optional<at::Tensor> bias) {
  return at::native::linear(input, weight, bias);
}

// A matrix, and a bias for each of its rows. Eager takes a vector as well, and a bias of whatever shape broadcasts.
bool AreRowsAndTheirBias(const at::Tensor& weight, const c10::IValue& bias) {
  return weight.dim() == 2 &&
         (bias.isNone() || !bias.toTensor().defined() || bias.toTensor().sizes() == weight.sizes().slice(0, 1));
}

bool LinearNeedsParts(Arguments arguments) {
  // The strides of gradients follow those of the operands, and are their own where there are no elements.
  return IsOutOfTheOrdinary(arguments) || !AreRowsAndTheirBias(arguments[1].toTensor(), arguments[2]) ||
         AnyTensor(arguments, [](const at::Tensor& tensor) { return !tensor.is_contiguous() || tensor.numel() == 0; });
}

bool LinearBackwardNeedsParts(Arguments arguments) {
  return IsOutOfTheOrdinary(arguments) ||
         (c10::GradMode::is_enabled() &&
          AnyTensor(arguments, [](const at::Tensor& tensor) { return tensor.requires_grad(); }));
}

}  // namespace

void RunLinearBackward(torch::jit::Stack* stack) { Runner<LinearBackward>(stack); }

void RegisterLinearAutograd(torch::Library& aten) {
  RegisterWholeOrParts(aten, "aten::linear", &Runner<Linear>, LinearNeedsParts);
  RegisterWholeOrParts(aten, "aten::linear_backward", &Runner<LinearBackward>, LinearBackwardNeedsParts);
}

}  // namespace torch_lazy::device
