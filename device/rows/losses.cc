// SPDX-License-Identifier: Apache-2.0
// Losses of elements and of classes, and their gradients. `reduction` has ATen's numbers.
#include "ir/decompose/loss.h"

#include "device/rows/formula.h"
#include "device/rows/rows.h"
#include "device/shapes/layers.h"

namespace torch_lazy::device {
namespace {

namespace formula = ir::decompose;
using formula::Reduction;
using ir::DType;
using ir::Value;

Reduction As(int64_t reduction) { return static_cast<Reduction>(reduction); }

using Weight = std::optional<Tensor>;
Value ValueOf(const Weight& weight) { return weight ? Value(*weight) : ir::kNoValue; }

// Each element's sign times delta, or the difference itself where it is smaller.
Value HuberBackward(Tensor g, Tensor x, Tensor target, Reduction reduction, Tensor delta) {
  const Tensor d = x - target;
  const Tensor slope = Where(Abs(d) >= delta, Where(d > 0.0, delta, -delta), d);
  if (reduction != Reduction::kMean) return slope * g;
  return 1.0 / Tensor(x.builder(), x.builder().Count(x.dims(), x.dtype())) * slope * g;
}

// What the class losses share: log_probs and target stand at `x_arg`, weight, reduction and ignored class behind them.
struct ClassArguments {
  Value log_probs;
  Value target;
  Value weight;
  Reduction reduction;
  Value ignored;
};

bool ReadClassArguments(lazy::Lowering& call, int x_arg, ClassArguments* args) {
  ir::Builder& b = call.b();
  const DType type = call.ComputeType();
  if (!ir::IsFloat(type)) return false;
  args->log_probs = b.Cast(call.Tensor(x_arg), type);
  args->target = b.Cast(call.Tensor(x_arg + 1), DType::kI64);
  args->weight = call.IsNone(x_arg + 2) ? ir::kNoValue : b.Cast(call.Tensor(x_arg + 2), type);
  args->reduction = As(call.Int(x_arg + 3));
  args->ignored = b.Const(DType::kI64, call.Int(x_arg + 4));
  return true;
}

// (g, log_probs, target, weight?, reduction, ignore_index, total_weight)
bool ClassLossBackward(lazy::Lowering& call) {
  ClassArguments args;
  if (!ReadClassArguments(call, 1, &args)) return false;
  const DType type = call.ComputeType();
  const Value g = call.b().Cast(call.Tensor(0), type), total_weight = call.b().Cast(call.Tensor(6), type);
  call.Return(0, formula::NllLossBackward(call.b(), g, args.log_probs, args.target, args.weight, args.reduction,
                                          args.ignored, total_weight));
  return true;
}

// (log_probs, target, weight?, reduction, ignore_index) -> (loss, total_weight). The CPU's stays with ATen, which
// raises for a target that is out of range; CUDA's kernels end the program there, ours give NaN.
bool ClassLoss(lazy::Lowering& call) {
  ClassArguments args;
  if (!call.IsForCuda() || !ReadClassArguments(call, 0, &args)) return false;
  const auto result =
      formula::NllLoss(call.b(), args.log_probs, args.target, args.weight, args.reduction, args.ignored);
  call.Return(0, result.loss);
  call.Return(1, result.total_weight);
  return true;
}

constexpr lazy::Row kLossRows[] = {
    {"aten::mse_loss",
     Formula<kFloats, [](Tensor x, Tensor target,
                         int64_t reduction) { return formula::MseLoss(x.builder(), x, target, As(reduction)); }>,
     kPlain, shapes::Loss},
    {"aten::mse_loss_backward",
     Formula<kFloats,
             [](Tensor g, Tensor x, Tensor target, int64_t reduction) {
               return formula::MseLossBackward(x.builder(), g, x, target, As(reduction));
             }>,
     kPlain, shapes::LossBackward},
    {"aten::smooth_l1_loss",
     Formula<kFloats, [](Tensor x, Tensor target, int64_t reduction,
                         Number beta) { return formula::SmoothL1Loss(x.builder(), x, target, As(reduction), beta); }>,
     kRefusesNumbers, shapes::Loss},
    {"aten::smooth_l1_loss_backward",
     Formula<kFloats,
             [](Tensor g, Tensor x, Tensor target, int64_t reduction, Number beta) {
               return formula::SmoothL1LossBackward(x.builder(), g, x, target, As(reduction), beta);
             }>,
     kWhole, shapes::LossBackward},
    {"aten::huber_loss",
     Formula<kFloats, [](Tensor x, Tensor target, int64_t reduction,
                         Number delta) { return formula::HuberLoss(x.builder(), x, target, As(reduction), delta); }>,
     kRefusesNumbers, shapes::Loss},
    {"aten::huber_loss_backward",
     Formula<kFloats, [](Tensor g, Tensor x, Tensor target, int64_t reduction,
                         Number delta) { return HuberBackward(g, x, target, As(reduction), delta); }>,
     kWhole, shapes::LossBackward},
    {"aten::binary_cross_entropy", Formula<kFloats,
                                           [](Tensor x, Tensor target, Weight weight, int64_t reduction) {
                                             return formula::BinaryCrossEntropy(x.builder(), x, target, ValueOf(weight),
                                                                                As(reduction));
                                           }>},
    {"aten::binary_cross_entropy_backward",
     Formula<kFloats,
             [](Tensor g, Tensor x, Tensor target, Weight weight, int64_t reduction) {
               return formula::BinaryCrossEntropyBackward(x.builder(), g, x, target, ValueOf(weight), As(reduction));
             }>},
    {"aten::nll_loss_forward", ClassLoss, kPlain, shapes::NllLoss},
    {"aten::nll_loss2d_forward", ClassLoss},
    {"aten::nll_loss_backward", ClassLossBackward, kTakesAllValues, shapes::NllLossBackward},
    {"aten::nll_loss2d_backward", ClassLossBackward, kTakesAllValues},
    {.name = "aten::soft_margin_loss", .flags = kWhole},
};

}  // namespace

Rows LossRows() { return kLossRows; }

}  // namespace torch_lazy::device
