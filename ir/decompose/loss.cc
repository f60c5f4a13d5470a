// SPDX-License-Identifier: Apache-2.0
#include "ir/decompose/loss.h"

#include <limits>
#include <numeric>

#include "ir/decompose/activation.h"
#include "ir/decompose/expression.h"
#include "ir/decompose/pick.h"

namespace torch_lazy::ir::decompose {
namespace {

Ints AllDims(const Expression& x) {
  Ints dims(x.rank());
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

// What a gradient of one element is multiplied with: `factor`, divided by the count for a mean.
Expression Norm(const Expression& x, double factor, Reduction reduction) {
  if (reduction != Reduction::kMean) return x.Number(factor);
  return factor / Expression(x.builder(), x.builder().Count(x.dims(), x.dtype()));
}

constexpr double kLeastLog = -100;  // bce: log(0) counts as this

}  // namespace

Value Reduced(Builder& b, Value elements, Reduction reduction) {
  const Expression x(b, elements);
  switch (reduction) {
    case Reduction::kNone:
      return x;
    case Reduction::kMean:
      return Mean(x, AllDims(x), /*keepdim=*/false);
    case Reduction::kSum:
      return Sum(x, AllDims(x), /*keepdim=*/false);
  }
  return x;
}

Value MseLoss(Builder& b, Value input, Value target, Reduction reduction) {
  return Reduced(b, Square(Expression(b, input) - Expression(b, target)), reduction);
}

Value MseLossBackward(Builder& b, Value grad, Value input, Value target, Reduction reduction) {
  const Expression g(b, grad), x(b, input), t(b, target);
  return Norm(x, 2, reduction) * (x - t) * g;
}

Value SmoothL1Loss(Builder& b, Value input, Value target, Reduction reduction, Value beta) {
  const Expression limit(b, beta);
  const Expression z = Abs(Expression(b, input) - Expression(b, target));
  return Reduced(b, Where(z < limit, 0.5 * z * z / limit, z - 0.5 * limit), reduction);
}

Value SmoothL1LossBackward(Builder& b, Value grad, Value input, Value target, Reduction reduction, Value beta) {
  const Expression g(b, grad), x(b, input), limit(b, beta);
  const Expression d = x - Expression(b, target);
  const Expression above = Where(d >= limit, d.Number(1), d / limit);
  return Norm(x, 1, reduction) * Where(d <= -limit, d.Number(-1), above) * g;
}

Value HuberLoss(Builder& b, Value input, Value target, Reduction reduction, Value delta) {
  const Expression limit(b, delta);
  const Expression z = Abs(Expression(b, input) - Expression(b, target));
  return Reduced(b, Where(z <= limit, 0.5 * z * z, limit * (z - 0.5 * limit)), reduction);
}

Value BinaryCrossEntropy(Builder& b, Value input, Value target, Value weight, Reduction reduction) {
  const Expression x(b, input), t(b, target);
  Expression loss = (t - 1.0) * Max(Log1p(-x), kLeastLog) - t * Max(Log(x), kLeastLog);
  if (weight != kNoValue) loss = loss * Expression(b, weight);
  return Reduced(b, loss, reduction);
}

Value BinaryCrossEntropyBackward(Builder& b, Value grad, Value input, Value target, Value weight, Reduction reduction) {
  const Expression g(b, grad), x(b, input), t(b, target);
  Expression dx = g * (x - t) / Max((1.0 - x) * x, 1e-12);
  if (weight != kNoValue) dx = dx * Expression(b, weight);
  if (reduction == Reduction::kMean) dx = dx / Expression(b, b.Count(x.dims(), x.dtype()));
  return dx;
}

Value BinaryCrossEntropyWithLogits(Builder& b, Value input, Value target, Value weight, Value pos_weight,
                                   Reduction reduction) {
  const Expression x(b, input), t(b, target), log_sigmoid(b, LogSigmoid(b, input));
  Expression loss = (1.0 - t) * x;
  if (pos_weight == kNoValue) {
    loss = loss - log_sigmoid;
  } else {
    loss = loss - ((Expression(b, pos_weight) - 1.0) * t + 1.0) * log_sigmoid;
  }
  if (weight != kNoValue) loss = loss * Expression(b, weight);
  return Reduced(b, loss, reduction);
}

namespace {

// Picks by comparing an iota over the classes with the target: this fuses with the log-softmax
// around it, forward and backward, where a gather and a scatter would not.
struct Picks {
  int dim;            // of the classes
  Expression hit;     // bool, dims of log_probs: this is the target's class, and it is not ignored
  Expression valid;   // bool, dims of the target
  Expression weight;  // dims of the target: the class's weight, 0 where ignored
};

Picks PicksOf(Builder& b, const Expression& x, Value target, Value weight, Value ignore_index) {
  const int dim = x.rank() == 1 ? 0 : 1;
  const Expression t(b, target);
  const Expression valid = NotEqual(t, Expression(b, ignore_index));
  Dims with_class = t.dims();
  with_class.insert(with_class.begin() + dim, Extent::Constant(1));
  const Expression classes(b, b.Iota({DType::kI64, x.dims()}, dim));
  const Expression same = Equal(classes, Expression(b, b.Reshape(t, with_class)));
  const Expression hit = Binary(Op::kAnd, same, Expression(b, b.Reshape(valid, with_class)));
  if (weight == kNoValue) return {dim, hit, valid, Where(valid, x.Number(1), x.Number(0))};
  Dims weight_dims(x.rank(), Extent::Constant(1));
  weight_dims[dim] = x.dims()[dim];
  const Expression w(b, b.Reshape(weight, weight_dims));
  return {dim, hit, valid, Sum(Where(hit, w, w.Number(0)), {dim}, /*keepdim=*/false)};
}

}  // namespace

NllLossResult NllLoss(Builder& b, Value log_probs, Value target, Value weight, Reduction reduction,
                      Value ignore_index) {
  const Expression x(b, log_probs);
  const Picks picks = PicksOf(b, x, target, weight, ignore_index);
  const Expression picked = Pick(x, picks.hit, picks.dim);
  const Expression t(b, target);
  const Expression classes(b, b.ExtentOf(x.dims()[picks.dim]));
  const Expression is_class = Binary(Op::kAnd, t >= t.Number(0), t < classes);
  const Expression loss = Where(is_class, -picked * picks.weight, x.Number(std::numeric_limits<double>::quiet_NaN()));
  const Expression losses = Where(picks.valid, loss, x.Number(0));
  const Ints all = AllDims(losses);
  // ATen gives a total weight of 0 where it is not needed.
  if (reduction == Reduction::kNone) return {losses, x.Number(0)};
  const Expression total = Sum(picks.weight, all, /*keepdim=*/false);
  const Expression sum = Sum(losses, all, /*keepdim=*/false);
  return {reduction == Reduction::kMean ? sum / total : sum, total};
}

Value NllLossBackward(Builder& b, Value grad, Value log_probs, Value target, Value weight, Reduction reduction,
                      Value ignore_index, Value total_weight) {
  const Expression x(b, log_probs);
  const Picks picks = PicksOf(b, x, target, weight, ignore_index);
  Expression g(b, grad);
  if (reduction == Reduction::kMean) g = g / Expression(b, total_weight);
  const Expression of_target = -picks.weight * g;  // dims of the target
  Dims with_class = of_target.dims();
  with_class.insert(with_class.begin() + picks.dim, Extent::Constant(1));
  return Where(picks.hit, Expression(b, b.Reshape(of_target, with_class)), x.Number(0));
}

}  // namespace torch_lazy::ir::decompose
