// SPDX-License-Identifier: Apache-2.0
// Whole optimizer steps over lists of parameters, as torch.optim sends them with `fused=True`.
//
// The formulas are those of ATen's fused CPU kernels; the bias corrections are taken in f64.
#include "device/rows/lists.h"
#include "device/rows/rows.h"
#include "ir/decompose/interpolate.h"

namespace torch_lazy::device {
namespace {

using ir::DType;
using ir::Op;

// The arguments of _fused_adam_ by position.
enum Adam {
  kParams,
  kGrads,
  kAverages,
  kSquares,
  kMaxSquares,
  kSteps,
  kRate,
  kBeta1,
  kBeta2,
  kDecay,
  kEpsilon,
  kUseMax,
  kMaximize,
  kGradScale,
  kFoundInf,
};

// 1 - beta ^ step
Tensor Correction(lazy::Lowering& call, int beta, const Tensor& step) {
  const Tensor b(call.b(), call.Number(beta, DType::kF64));
  return 1.0 - Binary(Op::kPow, b, step);
}

bool CanStep(lazy::Lowering& call, int num_lists) {
  for (int arg = 0; arg < num_lists; ++arg) {
    for (int k = 0; k < call.ListSize(arg); ++k) {
      if (call.b().dtype(call.ListTensor(arg, k)) != DType::kF32) return false;
    }
  }
  return call.ListSize(kParams) > 0;
}

// (params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, lr, betas, weight_decay, eps, amsgrad, maximize, ...)
template <bool kDecoupled, bool kTensorRate>
bool AdamStep(lazy::Lowering& call) {
  if (!call.IsNone(kGradScale) || !call.IsNone(kFoundInf) || call.Bool(kUseMax) || !CanStep(call, kSteps + 1))
    return false;
  const int n = call.ListSize(kParams);
  const auto number = [&](int arg, DType type) { return Tensor(call.b(), call.Number(arg, type)); };
  const Tensor decay = number(kDecay, DType::kF32), epsilon = number(kEpsilon, DType::kF32);
  const Tensor rate = kTensorRate ? Cast({call.b(), call.Tensor(kRate)}, DType::kF64) : number(kRate, DType::kF64);
  const Tensor beta1 = number(kBeta1, DType::kF64), beta2 = number(kBeta2, DType::kF64);
  const auto item = [&](int arg, int k) { return Tensor(call.b(), call.ListTensor(arg, k)); };
  for (int k = 0; k < n; ++k) {
    Tensor p = item(kParams, k), g = item(kGrads, k);
    const Tensor stored_g = g, step = Cast(item(kSteps, k), DType::kF64);
    if (call.Bool(kMaximize)) g = -g;
    if (kDecoupled)
      p = p - Cast(rate, DType::kF32) * decay * p;
    else
      g = g + decay * p;
    const Tensor average(call.b(),
                         ir::decompose::Lerp(call.b(), item(kAverages, k), g, Cast(1.0 - beta1, DType::kF32)));
    const Tensor square = Cast(beta2, DType::kF32) * item(kSquares, k) + Cast(1.0 - beta2, DType::kF32) * g * g;
    const Tensor root = Unary(Op::kSqrt, Correction(call, kBeta2, step));
    const Tensor size = Cast(rate / Correction(call, kBeta1, step), DType::kF32);
    const Tensor divisor = Unary(Op::kSqrt, square) / Cast(root, DType::kF32) + epsilon;
    call.Return(k, p - size * (average / divisor));
    call.Return(n + k, stored_g);
    call.Return(2 * n + k, average);
    call.Return(3 * n + k, square);
  }
  return true;
}

constexpr lazy::Row kOptimizerRows[] = {
    {"aten::_fused_adam_", AdamStep</*kDecoupled=*/false, /*kTensorRate=*/false>, kTakesAllValues},
    {"aten::_fused_adam_.tensor_lr", AdamStep<false, true>, kTakesAllValues},
    {"aten::_fused_adamw_", AdamStep<true, false>, kTakesAllValues},
    {"aten::_fused_adamw_.tensor_lr", AdamStep<true, true>, kTakesAllValues},
    {.name = "aten::_fused_adagrad_", .flags = kTakesAllValues},
    {.name = "aten::_fused_sgd_", .flags = kTakesAllValues},
};

}  // namespace

Rows OptimizerRows() { return kOptimizerRows; }

}  // namespace torch_lazy::device
