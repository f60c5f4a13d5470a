// SPDX-License-Identifier: Apache-2.0
#include "ir/decompose/norm.h"

#include "ir/decompose/expression.h"

namespace torch_lazy::ir::decompose {
namespace {

constexpr Extent kOne = Extent::Constant(1);

Ints DimRange(int begin, int end) {
  Ints dims;
  for (int dim = begin; dim < end; ++dim) dims.push_back(dim);
  return dims;
}

// All dims but 1, the channels.
Ints NotChannels(int rank) {
  Ints dims = {0};
  for (int dim = 2; dim < rank; ++dim) dims.push_back(dim);
  return dims;
}

// [channels] as [1, channels, 1, ...].
Expression PerChannel(Builder& b, Value v, int rank) {
  Dims dims(rank, kOne);
  dims[1] = b.dims(v)[0];
  return {b, b.Reshape(v, dims)};
}

Expression RstdOf(const Expression& variance, const Expression& eps) { return Unary(Op::kRsqrt, variance + eps); }

Expression SquaresAround(const Expression& mean, const Expression& x, const Ints& dims) {
  return Sum(Square(x - mean), dims, /*keepdim=*/true);
}

struct Statistics {
  Expression mean;
  Expression squares;  // the sum of squares of differences from the mean
};
Statistics StatisticsOf(const Expression& x, const Ints& dims) {
  const Expression mean = Mean(x, dims, /*keepdim=*/true);
  return {mean, SquaresAround(mean, x, dims)};
}

Expression CountOf(const Expression& x, const Ints& dims) {
  Dims extents;
  for (int64_t dim : dims) extents.push_back(x.dims()[dim]);
  return {x.builder(), x.builder().Count(extents, x.dtype())};
}

// rstd * (g - S(g) / N - xh * S(g * xh) / N)
Expression GradientOfInput(const Expression& g, const Expression& xh, const Expression& rstd, const Ints& dims) {
  const Expression mean_g = Mean(g, dims, /*keepdim=*/true);
  const Expression mean_gxh = Mean(g * xh, dims, /*keepdim=*/true);
  return rstd * (g - mean_g - xh * mean_gxh);
}

// x as [batch, groups, channels of a group, ...].
Expression InGroups(const Expression& x, Groups groups) {
  Dims dims = {x.dims()[0], groups.count, groups.channels};
  dims.insert(dims.end(), x.dims().begin() + 2, x.dims().end());
  return {x.builder(), x.builder().Reshape(x, dims)};
}

// [batch, groups] as [batch, groups, 1, ...].
Expression PerGroup(Builder& b, Value v, int rank) {
  Dims dims(rank, kOne);
  dims[0] = b.dims(v)[0];
  dims[1] = b.dims(v)[1];
  return {b, b.Reshape(v, dims)};
}

Expression ScaleChannels(Expression y, Value weight, Value bias) {
  Builder& b = y.builder();
  if (weight != kNoValue) y = y * PerChannel(b, weight, y.rank());
  if (bias != kNoValue) y = y + PerChannel(b, bias, y.rank());
  return y;
}

}  // namespace

Value Rstd(Builder& b, Value variance, Value eps) { return RstdOf({b, variance}, {b, eps}); }

Normalized LayerNorm(Builder& b, Value input, int axis, Value weight, Value bias, Value eps) {
  const Expression x(b, input);
  const Ints dims = DimRange(axis, x.rank());
  const Statistics s = StatisticsOf(x, dims);
  const Expression rstd = RstdOf(s.squares / CountOf(x, dims), {b, eps});
  Expression y = (x - s.mean) * rstd;
  if (weight != kNoValue) y = y * Expression(b, weight);
  if (bias != kNoValue) y = y + Expression(b, bias);
  return {y, s.mean, rstd};
}

NormGradients LayerNormBackward(Builder& b, Value grad, Value input, int axis, Value mean, Value rstd, Value weight) {
  const Expression g(b, grad), x(b, input), r(b, rstd);
  const Expression xh = (x - Expression(b, mean)) * r;
  const Expression gw = weight == kNoValue ? g : g * Expression(b, weight);
  const Ints rows = DimRange(0, axis);
  return {GradientOfInput(gw, xh, r, DimRange(axis, x.rank())), Sum(g * xh, rows, /*keepdim=*/false),
          Sum(g, rows, /*keepdim=*/false)};
}

Normalized GroupNorm(Builder& b, Value input, Groups groups, Value weight, Value bias, Value eps) {
  const Expression x = InGroups({b, input}, groups);
  const Ints dims = DimRange(2, x.rank());
  const Statistics s = StatisticsOf(x, dims);
  const Expression rstd = RstdOf(s.squares / CountOf(x, dims), {b, eps});
  const Expression y(b, b.Reshape((x - s.mean) * rstd, b.dims(input)));
  const Dims groups_only = {x.dims()[0], groups.count};
  return {ScaleChannels(y, weight, bias), b.Reshape(s.mean, groups_only), b.Reshape(rstd, groups_only)};
}

NormGradients GroupNormBackward(Builder& b, Value grad, Value input, Groups groups, Value mean, Value rstd,
                                Value weight) {
  const Expression g(b, grad), x = InGroups({b, input}, groups);
  const Expression r = PerGroup(b, rstd, x.rank());
  const Expression xh = (x - PerGroup(b, mean, x.rank())) * r;
  const Expression gw = InGroups(ScaleChannels(g, weight, kNoValue), groups);
  const Expression dx = GradientOfInput(gw, xh, r, DimRange(2, x.rank()));
  const Ints others = NotChannels(g.rank());
  const Expression xh_channels(b, b.Reshape(xh, g.dims()));
  return {b.Reshape(dx, g.dims()), Sum(g * xh_channels, others, /*keepdim=*/false), Sum(g, others, /*keepdim=*/false)};
}

BatchNormTraining BatchNormForTraining(Builder& b, Value input, Value weight, Value bias, Value running_mean,
                                       Value running_variance, Value momentum, Value eps) {
  const Expression x(b, input), m(b, momentum);
  const Ints dims = NotChannels(x.rank());
  const Dims channels = {x.dims()[1]};
  const auto blended = [&](const Expression& statistic, Value running) -> Value {
    return m * Expression(b, b.Reshape(statistic, channels)) + (1.0 - m) * Expression(b, running);
  };
  const Expression mean = Mean(x, dims, /*keepdim=*/true);
  // Before what is made of the squares, so that whoever folds these can make it on the way.
  const Value new_mean = running_mean != kNoValue ? blended(mean, running_mean) : kNoValue;
  const Expression squares = SquaresAround(mean, x, dims), count = CountOf(x, dims);
  const Expression rstd = RstdOf(squares / count, {b, eps});
  const Value y = ScaleChannels((x - mean) * rstd, weight, bias);
  const Value new_variance =
      running_variance != kNoValue ? blended(squares / (count - 1.0), running_variance) : kNoValue;
  return {{y, b.Reshape(mean, channels), b.Reshape(rstd, channels)}, new_mean, new_variance};
}

Value BatchNormForInference(Builder& b, Value input, Value weight, Value bias, Value running_mean,
                            Value running_variance, Value eps) {
  const Expression x(b, input);
  const Expression rstd = PerChannel(b, Rstd(b, running_variance, eps), x.rank());
  return ScaleChannels((x - PerChannel(b, running_mean, x.rank())) * rstd, weight, bias);
}

NormGradients BatchNormBackward(Builder& b, Value grad, Value input, Value mean, Value rstd, Value weight,
                                bool training) {
  const Expression g(b, grad), x(b, input);
  const Expression r = PerChannel(b, rstd, x.rank());
  const Expression xh = (x - PerChannel(b, mean, x.rank())) * r;
  const Ints dims = NotChannels(x.rank());
  // The weight is one number per channel, so it can be multiplied last.
  const Expression dx = training ? GradientOfInput(g, xh, r, dims) : g * r;
  return {ScaleChannels(dx, weight, kNoValue), Sum(g * xh, dims, /*keepdim=*/false), Sum(g, dims, /*keepdim=*/false)};
}

}  // namespace torch_lazy::ir::decompose
