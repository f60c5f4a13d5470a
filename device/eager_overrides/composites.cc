// SPDX-License-Identifier: Apache-2.0
// Operators that are said by others, so that the recorder sees what they write and need not cut for them.
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/RangeUtils.h>
#include <ATen/ops/_native_batch_norm_legit.h>
#include <ATen/ops/_native_batch_norm_legit_no_training.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <c10/core/DefaultDtype.h>

#include "device/eager_overrides/kernels.h"
#include "device/eager_overrides/runner.h"
#include "device/eager_overrides/runners.h"

namespace torch_lazy::device {
namespace {

// The schema of native_batch_norm hides that training updates the running statistics; its twins say it.
std::tuple<at::Tensor, at::Tensor, at::Tensor> NativeBatchNorm(const at::Tensor& input,
                                                               const std::optional<at::Tensor>& weight,
                                                               const std::optional<at::Tensor>& bias,
                                                               const std::optional<at::Tensor>& running_mean,
                                                               const std::optional<at::Tensor>& running_var,
                                                               bool training, double momentum, double eps) {
  const bool has_stats = running_mean.has_value() && running_mean->defined();
  if (!has_stats) return at::_native_batch_norm_legit(input, weight, bias, training, momentum, eps);
  if (!training) {
    return at::_native_batch_norm_legit_no_training(input, weight, bias, *running_mean, *running_var, momentum, eps);
  }
  at::Tensor mean = *running_mean, var = *running_var;
  return at::_native_batch_norm_legit(input, weight, bias, mean, var, training, momentum, eps);
}

int64_t LengthOfRange(at::ScalarType type, const at::Scalar& start, const at::Scalar& end, const at::Scalar& step) {
  return type == at::kLong ? at::native::compute_arange_size<int64_t>(start, end, step)
                           : at::native::compute_arange_size<double>(start, end, step);
}

// torch_lazy::arange
at::Tensor FillRange(at::Tensor result, at::Scalar start, at::Scalar end, at::Scalar step) {
  TORCH_CHECK_VALUE(result.dim() == 1 && result.size(0) == LengthOfRange(result.scalar_type(), start, end, step),
                    "arange: the range is not as long as the result");
  return at::arange_out(result, start, end, step);
}

// The length is what eager computes. The numbers are filled in by a recorded call of our own: ATen's would resize its
// result, so that each length would be another call.
at::Tensor ArangeStep(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step,
                      std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                      std::optional<at::Device> device, std::optional<bool> pin_memory) {
  const bool integers = start.isIntegral(/*includeBool=*/true) && end.isIntegral(true) && step.isIntegral(true);
  const at::ScalarType type = dtype.value_or(integers ? at::kLong : c10::get_default_dtype_as_scalartype());
  const int64_t length = LengthOfRange(type, start, end, step);
  at::Tensor result = at::empty({length}, type, layout, device, pin_memory, std::nullopt);
  using Fill = at::Tensor&(at::Tensor&, const at::Scalar&, const at::Scalar&, const at::Scalar&);
  static const auto fill = c10::Dispatcher::singleton().findSchemaOrThrow("torch_lazy::arange", "").typed<Fill>();
  return fill.call(result, start, end, step);
}

at::Tensor ArangeStart(const at::Scalar& start, const at::Scalar& end, std::optional<at::ScalarType> dtype,
                       std::optional<at::Layout> layout, std::optional<at::Device> device,
                       std::optional<bool> pin_memory) {
  return ArangeStep(start, end, /*step=*/1, dtype, layout, device, pin_memory);
}

at::Tensor Arange(const at::Scalar& end, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                  std::optional<at::Device> device, std::optional<bool> pin_memory) {
  return ArangeStep(/*start=*/0, end, /*step=*/1, dtype, layout, device, pin_memory);
}

}  // namespace

void RunArange(torch::jit::Stack* stack) { Runner<FillRange>(stack); }

void RegisterComposites(torch::Library& aten) {
  aten.impl("arange", &Arange);
  aten.impl("arange.start", &ArangeStart);
  aten.impl("arange.start_step", &ArangeStep);
  aten.impl("native_batch_norm", &NativeBatchNorm);
}

}  // namespace torch_lazy::device
