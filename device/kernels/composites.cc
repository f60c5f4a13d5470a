// SPDX-License-Identifier: Apache-2.0
// Operators that are said by others, so that the recorder sees what they write and need not cut for them.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/RangeUtils.h>
#include <ATen/ops/_native_batch_norm_legit.h>
#include <ATen/ops/_native_batch_norm_legit_no_training.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/native_dropout.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DefaultDtype.h>

#include "device/kernels/kernels.h"
#include "lazy/draw.h"
#include "lazy/eager_device.h"
#include "lazy/storage.h"

namespace torch_lazy::device {
namespace {

// The schema of native_batch_norm hides that training updates the running statistics; its twins say it.
std::tuple<at::Tensor, at::Tensor, at::Tensor> NativeBatchNorm(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                                                               const std::optional<at::Tensor>& bias,
                                                               const std::optional<at::Tensor>& running_mean,
                                                               const std::optional<at::Tensor>& running_var, bool training,
                                                               double momentum, double eps) {
  const bool has_stats = running_mean.has_value() && running_mean->defined();
  if (!has_stats) return at::_native_batch_norm_legit(input, weight, bias, training, momentum, eps);
  if (!training) {
    return at::_native_batch_norm_legit_no_training(input, weight, bias, *running_mean, *running_var, momentum, eps);
  }
  at::Tensor mean = *running_mean, var = *running_var;
  return at::_native_batch_norm_legit(input, weight, bias, mean, var, training, momentum, eps);
}

// CUDA's kernel draws a mask for a tensor that lies as this one, whatever it holds. It keeps its probability in f32 where it
// computes in f32.
at::Tensor MaskOfCuda(const at::Tensor& input, double p) {
  const at::Tensor like = at::empty_strided(input.sizes(), input.strides(), input.options().device(lazy::EagerDevice()));
  const std::lock_guard<std::mutex> lock(lazy::DrawMutex());
  const at::Tensor mask = std::get<1>(at::native_dropout(like, p, /*train=*/true));
  return lazy::MakeTensor(lazy::MakeStorage(mask.storage()), mask.scalar_type(), mask.sizes(), mask.strides());
}

double ScaleOfCuda(const at::Tensor& input, double p) {
  const double kept = 1 - p;
  return p == 1 ? 0.0 : 1.0 / (input.scalar_type() == at::kDouble ? kept : static_cast<double>(static_cast<float>(kept)));
}

// As native_dropout on the CPU, or on CUDA. The mask is drawn at once, into memory of its own, in the order of the program;
// the products are recorded.
std::tuple<at::Tensor, at::Tensor> NativeDropout(const at::Tensor& input, double p, std::optional<bool> train) {
  const at::TensorOptions mask_options = input.options().dtype(at::kBool);
  if (input.numel() == 0) return {input, at::empty_like(input, input.options())};
  if (train.has_value() && !*train) return {input.clone(), at::ones_like(input, mask_options)};
  at::Tensor mask = lazy::IsOnHost() ? at::empty_like(input, mask_options).bernoulli_(1 - p) : MaskOfCuda(input, p);
  at::Tensor output = at::mul(input, mask);
  output.mul_(!lazy::IsOnHost() ? ScaleOfCuda(input, p) : p == 1 ? 0.0 : 1.0 / (1 - p));
  return {output, mask};
}

// The products that eager takes on the CPU; of other devices, CUDA among them, PyTorch asks native_dropout, which rounds
// otherwise.
at::Tensor Dropout(const at::Tensor& input, double p, bool train) {
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  if (p == 0 || !train || input.numel() == 0) return input;
  if (p == 1) return input.mul(at::zeros({}, input.options()));
  if (!lazy::IsOnHost()) return std::get<0>(at::native_dropout(input, p, train));
  return input * at::empty_like(input).bernoulli_(1 - p).div_(1 - p);
}

// The length is what eager computes; the numbers are filled in by a recorded call, where ATen would resize an empty tensor.
at::Tensor ArangeStep(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, std::optional<at::ScalarType> dtype,
                      std::optional<at::Layout> layout, std::optional<at::Device> device, std::optional<bool> pin_memory) {
  const bool integers = start.isIntegral(/*includeBool=*/true) && end.isIntegral(true) && step.isIntegral(true);
  const at::ScalarType type = dtype.value_or(integers ? at::kLong : c10::get_default_dtype_as_scalartype());
  const int64_t length = type == at::kLong ? at::native::compute_arange_size<int64_t>(start, end, step)
                                           : at::native::compute_arange_size<double>(start, end, step);
  at::Tensor result = at::empty({length}, type, layout, device, pin_memory, std::nullopt);
  return at::arange_out(result, start, end, step);
}

at::Tensor ArangeStart(const at::Scalar& start, const at::Scalar& end, std::optional<at::ScalarType> dtype,
                       std::optional<at::Layout> layout, std::optional<at::Device> device, std::optional<bool> pin_memory) {
  return ArangeStep(start, end, /*step=*/1, dtype, layout, device, pin_memory);
}

at::Tensor Arange(const at::Scalar& end, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                  std::optional<at::Device> device, std::optional<bool> pin_memory) {
  return ArangeStep(/*start=*/0, end, /*step=*/1, dtype, layout, device, pin_memory);
}

}  // namespace

void RegisterDropout(torch::Library& aten) { aten.impl("dropout", &Dropout); }

void RegisterComposites(torch::Library& aten) {
  aten.impl("arange", &Arange);
  aten.impl("arange.start", &ArangeStart);
  aten.impl("arange.start_step", &ArangeStep);
  aten.impl("native_batch_norm", &NativeBatchNorm);
  aten.impl("native_dropout", &NativeDropout);
}

}  // namespace torch_lazy::device
