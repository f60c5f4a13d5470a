// SPDX-License-Identifier: Apache-2.0
// Dropout: recorded products with a mask that is drawn at once on the CPU; on a GPU an operator of our own, which draws
// the numbers of CUDA's generator that are its own in the order of the program, whenever it runs.
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/native_dropout.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "device/eager_overrides/cuda_dropout.h"
#include "device/eager_overrides/kernels.h"
#include "device/eager_overrides/runner.h"
#include "device/eager_overrides/runners.h"
#include "ir/philox.h"
#include "lazy/calls/device_of_call.h"
#include "lazy/cuda/philox.h"
#include "lazy/eager/eager_device.h"
#include "lazy/eager/on_host.h"
#include "lazy/ops/op.h"
#include "lazy/trace/replay_recorder.h"
#include "lazy/trace/storage.h"
#include "torch_compat/dropout.h"

namespace torch_lazy::device {
namespace {

using Result = std::tuple<at::Tensor, at::Tensor>;  // the output, and which elements are kept

bool IsHalf(at::ScalarType dtype) { return dtype == at::kHalf || dtype == at::kBFloat16; }

// ---- torch_lazy::dropout ----

// Its mask, on the host.
at::Tensor Kept(const at::Tensor& input, const ir::PhiloxLaunch& launch, int64_t threshold,
                const std::vector<int64_t>& order) {
  at::Tensor mask = at::empty_like(input, input.options().dtype(at::kBool));
  const at::Tensor in_order = at::empty(input.permute(order).sizes(), mask.options());
  bool* const kept = in_order.mutable_data_ptr<bool>();
  for (int64_t k = 0; k < in_order.numel(); ++k) kept[k] = ir::PhiloxAt(launch, k) < threshold;
  mask.permute(order).copy_(in_order);
  return mask;
}

// CUDA's kernel; on the host, what it does.
Result RunKnownDropout(at::Tensor input, double p, double scale, at::Scalar threshold, at::Scalar seed,
                       at::Scalar offset, at::Scalar threads, int64_t width, std::vector<int64_t> order) {
  const lazy::PhiloxDraw draw = {seed.toLong(), offset.toLong()};
  if (!input.is_cpu()) {
    const lazy::DrawScope scope(draw);
    return at::native_dropout(input, p, /*train=*/true);
  }
  const at::Tensor mask = Kept(input, {draw.seed, draw.offset, threads.toLong(), width}, threshold.toLong(), order);
  const at::Tensor wide = IsHalf(input.scalar_type()) ? input.to(at::kFloat) : input;
  return {at::empty_like(input).copy_(wide * mask * scale), mask};
}

Result Record(const at::Tensor& input, double p, const DropoutLaunch& launch) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("torch_lazy::dropout", "")
                             .typed<Result(const at::Tensor&, double, double, const at::Scalar&, const at::Scalar&,
                                           const at::Scalar&, const at::Scalar&, int64_t, at::IntArrayRef)>();
  const lazy::PhiloxDraw draw = lazy::TakeRecordedDraw(launch.numbers_per_thread);
  const at::ScalarType dtype = input.scalar_type();
  return op.call(input, p, ScaleOf(dtype, p), ThresholdOf(dtype, p), draw.seed, draw.offset, launch.threads,
                 launch.width, launch.order);
}

// ---- ATen's operators ----

// Drawn for a tensor that lies as this one, whatever it holds.
at::Tensor MaskOfCuda(const at::Tensor& input, double p) {
  const at::Tensor like =
      at::empty_strided(input.sizes(), input.strides(), input.options().device(lazy::EagerDevice()));
  const std::lock_guard<std::mutex> lock(lazy::DrawMutex());
  const at::Tensor mask = std::get<1>(at::native_dropout(like, p, /*train=*/true));
  return lazy::MakeTensor(lazy::MakeStorage(mask.storage()), mask.scalar_type(), mask.sizes(), mask.strides());
}

bool IsRecorded(const at::Tensor& input, double p, int64_t width) {
  const at::ScalarType dtype = input.scalar_type();
  const bool computes = dtype == at::kFloat || dtype == at::kDouble || IsHalf(dtype);
  const bool is_counted = input.numel() <= std::numeric_limits<uint32_t>::max();  // in kernels, by 32 bits
  return computes && is_counted && p >= 0 && p < 1 && DrawsAsKnown(dtype, width);
}

Result OnGpu(const at::Tensor& input, double p) {
  if (p == 1) return {at::zeros_like(input), at::zeros_like(input, input.options().dtype(at::kBool))};
  const DropoutLaunch launch = LaunchOf(input, lazy::MultiprocessorsOfGpu());
  if (IsRecorded(input, p, launch.width)) return Record(input, p, launch);
  const at::Tensor mask = MaskOfCuda(input, p);
  return {at::mul(input, mask).mul_(ScaleOf(input.scalar_type(), p)), mask};
}

// As native_dropout on the CPU, or on CUDA.
Result NativeDropout(const at::Tensor& input, double p, std::optional<bool> train) {
  const at::TensorOptions mask_options = input.options().dtype(at::kBool);
  if (input.numel() == 0) return {input, at::empty_like(input, input.options())};
  const lazy::OnDevice on(lazy::DeviceOf(input));
  if (train.has_value() && !*train) return {input.clone(), at::ones_like(input, mask_options)};
  if (!lazy::IsOnHost()) return OnGpu(input, p);
  at::Tensor mask = at::empty_like(input, mask_options).bernoulli_(1 - p);
  at::Tensor output = at::mul(input, mask);
  output.mul_(p == 1 ? 0.0 : 1.0 / (1 - p));
  return {output, mask};
}

// The products that eager takes on the CPU; of other devices, CUDA among them, PyTorch asks native_dropout, which
// rounds otherwise.
at::Tensor Dropout(const at::Tensor& input, double p, bool train) {
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  if (p == 0 || !train || input.sym_numel() == 0) return input;  // Dynamo's tensors come here, too
  if (p == 1) return input.mul(at::zeros({}, input.options()));
  if (!lazy::IsOnHost()) return std::get<0>(at::native_dropout(input, p, train));
  const at::ScalarType drawn = torch_compat::DrawnByDropout(input.scalar_type());
  return input * at::empty_like(input, input.options().dtype(drawn)).bernoulli_(1 - p).div_(1 - p);
}

}  // namespace

void RunDropout(torch::jit::Stack* stack) { Runner<RunKnownDropout>(stack); }

void RegisterDropout(torch::Library& aten) { aten.impl("dropout", &Dropout); }

void RegisterNativeDropout(torch::Library& aten) { aten.impl("native_dropout", &NativeDropout); }

}  // namespace torch_lazy::device
