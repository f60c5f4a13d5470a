// SPDX-License-Identifier: Apache-2.0
// Layer, group and batch normalisation, and their gradients.
#include "ir/decompose/norm.h"

#include "device/rows/formula.h"
#include "device/rows/rows.h"
#include "device/shapes/layers.h"

namespace torch_lazy::device {
namespace {

namespace formula = ir::decompose;
using ir::DType;
using ir::Value;

// An optional tensor in the type that the row computes in.
Value Read(lazy::Lowering& call, int arg, DType type) {
  return call.IsNone(arg) ? ir::kNoValue : call.b().Cast(call.Tensor(arg), type);
}

// The gradients by a mask may be undefined, so the type is the operand's.
DType TypeOf(lazy::Lowering& call, int arg) { return Wide(call.b().dtype(call.Tensor(arg))); }

bool ReturnNormalized(lazy::Lowering& call, const formula::Normalized& result) {
  call.Return(0, result.y);
  call.Return(1, result.mean);
  call.Return(2, result.rstd);
  return true;
}

bool ReturnGradients(lazy::Lowering& call, const formula::NormGradients& gradients) {
  call.Return(0, gradients.x);
  call.Return(1, gradients.weight);
  call.Return(2, gradients.bias);
  return true;
}

// The first of the dims that are normalised.
int Axis(lazy::Lowering& call, int x_arg, int shape_arg) {
  return call.b().rank(call.Tensor(x_arg)) - static_cast<int>(call.IntList(shape_arg).size());
}

// (x, normalized_shape, weight?, bias?, eps)
bool LayerNorm(lazy::Lowering& call) {
  const DType type = TypeOf(call, 0);
  if (!ir::IsFloat(type)) return false;
  return ReturnNormalized(call, formula::LayerNorm(call.b(), Read(call, 0, type), Axis(call, 0, 1), Read(call, 2, type),
                                                   Read(call, 3, type), call.Number(4, type)));
}

// (g, x, normalized_shape, mean, rstd, weight?, bias?, mask)
bool LayerNormBackward(lazy::Lowering& call) {
  const DType type = TypeOf(call, 1);
  if (!ir::IsFloat(type)) return false;
  return ReturnGradients(
      call, formula::LayerNormBackward(call.b(), Read(call, 0, type), Read(call, 1, type), Axis(call, 1, 2),
                                       Read(call, 3, type), Read(call, 4, type), Read(call, 5, type)));
}

// Groups of one channel, or one group of all: other groups would need an extent that is a quotient.
bool GroupsOf(lazy::Lowering& call, int x_arg, int64_t num_channels, int64_t num_groups, formula::Groups* groups) {
  const ir::Extent one = ir::Extent::Constant(1), channels = call.b().dims(call.Tensor(x_arg))[1];
  if (num_groups != 1 && num_groups != num_channels) return false;
  *groups = num_groups == 1 ? formula::Groups{one, channels} : formula::Groups{channels, one};
  return true;
}

// (x, weight?, bias?, N, C, HxW, groups, eps)
bool GroupNorm(lazy::Lowering& call) {
  const DType type = TypeOf(call, 0);
  formula::Groups groups;
  if (!ir::IsFloat(type) || !GroupsOf(call, 0, call.Int(4), call.Int(6), &groups)) return false;
  return ReturnNormalized(call, formula::GroupNorm(call.b(), Read(call, 0, type), groups, Read(call, 1, type),
                                                   Read(call, 2, type), call.Number(7, type)));
}

// (g, x, mean, rstd, weight?, N, C, HxW, groups, mask)
bool GroupNormBackward(lazy::Lowering& call) {
  const DType type = TypeOf(call, 1);
  formula::Groups groups;
  if (!ir::IsFloat(type) || !GroupsOf(call, 1, call.Int(6), call.Int(8), &groups)) return false;
  return ReturnGradients(
      call, formula::GroupNormBackward(call.b(), Read(call, 0, type), Read(call, 1, type), groups, Read(call, 2, type),
                                       Read(call, 3, type), Read(call, 4, type)));
}

// With running statistics, which are written, or without; what follows them stands at `momentum_arg`.
bool BatchNormTraining(lazy::Lowering& call, bool has_stats, int momentum_arg) {
  const DType type = TypeOf(call, 0);
  if (!ir::IsFloat(type)) return false;
  const auto stat = [&](int arg) {
    return has_stats ? Read(call, arg, Wide(call.b().dtype(call.Tensor(arg)))) : ir::kNoValue;
  };
  const Value running_mean = stat(3), running_variance = stat(4);
  if (has_stats && (call.b().dtype(running_mean) != type || call.b().dtype(running_variance) != type)) return false;
  const formula::BatchNormTraining result = formula::BatchNormForTraining(
      call.b(), Read(call, 0, type), Read(call, 1, type), Read(call, 2, type), running_mean, running_variance,
      call.Number(momentum_arg, type), call.Number(momentum_arg + 1, type));
  ReturnNormalized(call, result.normalized);
  if (!has_stats) return true;
  call.Return(3, result.running_mean);
  call.Return(4, result.running_variance);
  return true;
}

// (x, weight?, bias?, running_mean, running_var, momentum, eps); the two other results are empty, or on a GPU the
// statistics.
bool BatchNormInference(lazy::Lowering& call) {
  const DType type = TypeOf(call, 0);
  if (!ir::IsFloat(type)) return false;
  const Value mean = Read(call, 3, type), variance = Read(call, 4, type), eps = call.Number(6, type);
  call.Return(0, formula::BatchNormForInference(call.b(), Read(call, 0, type), Read(call, 1, type), Read(call, 2, type),
                                                mean, variance, eps));
  const bool has_statistics = call.Result(1).dims == call.b().dims(mean);
  call.Return(1, has_statistics ? mean : call.b().Const(type, 0));
  call.Return(2, has_statistics ? formula::Rstd(call.b(), variance, eps) : call.b().Const(type, 0));
  return true;
}

// (x, weight?, bias?, running_mean, running_var, training, momentum, eps); without training nothing is written, and the
// call is rare. Of the `out=` form, the statistics would be the first results.
bool BatchNorm(lazy::Lowering& call) {
  if (!call.Bool(5) || call.Result(0).rank() != call.b().rank(call.Tensor(0))) return false;
  return BatchNormTraining(call, /*has_stats=*/true, /*momentum_arg=*/6);
}

// (x, weight?, bias?, training, momentum, eps)
bool BatchNormWithoutStats(lazy::Lowering& call) {
  return BatchNormTraining(call, /*has_stats=*/false, /*momentum_arg=*/4);
}

// (g, x, weight?, running_mean?, running_var?, save_mean?, save_rstd?, training, eps, mask)
bool BatchNormBackward(lazy::Lowering& call) {
  const DType type = TypeOf(call, 1);
  const bool training = call.Bool(7);
  if (!ir::IsFloat(type) || call.IsNone(training ? 5 : 3) || call.IsNone(training ? 6 : 4)) return false;
  const Value mean = Read(call, training ? 5 : 3, type);
  const Value rstd =
      training ? Read(call, 6, type) : formula::Rstd(call.b(), Read(call, 4, type), call.Number(8, type));
  return ReturnGradients(call, formula::BatchNormBackward(call.b(), Read(call, 0, type), Read(call, 1, type), mean,
                                                          rstd, Read(call, 2, type), training));
}

constexpr lazy::Row kNormRows[] = {
    {"aten::native_layer_norm", LayerNorm, kWhole | kTakesAllValues, shapes::LayerNorm},
    {"aten::native_layer_norm_backward", LayerNormBackward, kTakesAllValues, shapes::LayerNormBackward},
    {"aten::native_group_norm", GroupNorm, kWhole | kTakesAllValues, shapes::GroupNorm},
    {"aten::native_group_norm_backward", GroupNormBackward, kTakesAllValues, shapes::GroupNormBackward},
    {"aten::_native_batch_norm_legit", BatchNorm, kTakesAllValues, shapes::BatchNorm},
    {"aten::_native_batch_norm_legit.no_stats", BatchNormWithoutStats, kTakesAllValues},
    {"aten::_native_batch_norm_legit_no_training", BatchNormInference, kWhole | kTakesAllValues | kScalesChannels},
    {"aten::native_batch_norm_backward", BatchNormBackward, kTakesAllValues, shapes::BatchNormBackward},
    {.name = "aten::native_batch_norm", .flags = kTakesAllValues},
};

}  // namespace

Rows NormRows() { return kNormRows; }

}  // namespace torch_lazy::device
