// SPDX-License-Identifier: Apache-2.0
#include "ir/decompose/activation.h"

#include "ir/decompose/expression.h"

namespace torch_lazy::ir::decompose {
namespace {

Expression SigmoidOf(const Expression& x) { return Unary(Op::kRecip, 1.0 + Exp(-x)); }

}  // namespace

Value Relu(Builder& b, Value input) {
  const Expression x(b, input);
  return Where(x <= 0.0, x.Number(0), x);
}

Value ThresholdBackward(Builder& b, Value grad, Value input, Value threshold) {
  const Expression g(b, grad), x(b, input), t(b, threshold);
  return Where(x <= t, g.Number(0), g);
}

Value Clamp(Builder& b, Value input, Value min, Value max) {
  Expression x(b, input);
  if (min != kNoValue) x = Max(x, Expression(b, min));
  if (max != kNoValue) x = Min(x, Expression(b, max));
  return x;
}

Value HardtanhBackward(Builder& b, Value grad, Value input, Value min, Value max) {
  const Expression g(b, grad), x(b, input), low(b, min), high(b, max);
  return Where(Binary(Op::kOr, x <= low, x >= high), g.Number(0), g);
}

Value LeakyRelu(Builder& b, Value input, Value slope) {
  const Expression x(b, input), s(b, slope);
  return Where(x > 0.0, x, x * s);
}

Value LeakyReluBackward(Builder& b, Value grad, Value input, Value slope) {
  const Expression g(b, grad), x(b, input), s(b, slope);
  return Where(x > 0.0, g, g * s);
}

Value Sigmoid(Builder& b, Value x) { return SigmoidOf({b, x}); }

Value SigmoidBackward(Builder& b, Value grad, Value result) {
  const Expression g(b, grad), y(b, result);
  return g * (1.0 - y) * y;
}

Value TanhBackward(Builder& b, Value grad, Value result) {
  const Expression g(b, grad), y(b, result);
  return g * Fma(-y, y, y.Number(1));
}

Value LogSigmoid(Builder& b, Value input) {
  const Expression x(b, input);
  return Min(x, 0.0) - Log1p(Exp(-Abs(x)));
}

Value LogSigmoidBackward(Builder& b, Value grad, Value input) {
  const Expression g(b, grad), x(b, input);
  const Expression negative = x < 0.0;
  const Expression z = Exp(-Abs(x));
  const Expression max_derivative = Where(negative, x.Number(1), x.Number(0));
  const Expression sign = Where(negative, x.Number(1), x.Number(-1));
  return g * (max_derivative - sign * (z / (1.0 + z)));
}

Value Silu(Builder& b, Value input) {
  const Expression x(b, input);
  return x / (1.0 + Exp(-x));
}

Value SiluBackward(Builder& b, Value grad, Value input) {
  const Expression g(b, grad), x(b, input);
  const Expression s = SigmoidOf(x);
  return g * s * Fma(x, 1.0 - s, x.Number(1));
}

namespace {
constexpr double kSqrtHalf = 0.70710678118654752440;  // 1.0 / sqrt(2)
constexpr double kTwoOverSqrtPi = 1.12837916709551257390;
constexpr double kTanhScale = kTwoOverSqrtPi * kSqrtHalf;  // sqrt(2.0 / pi)
constexpr double kTanhCube = 0.044715;

Expression TanhArgument(const Expression& x, const Expression& x_cube) {
  return kTanhScale * Fma(x.Number(kTanhCube), x_cube, x);
}
}  // namespace

Value Gelu(Builder& b, Value input, GeluForm form) {
  const Expression x(b, input);
  if (form == GeluForm::kErf) return x * 0.5 * (1.0 + Erf(x * kSqrtHalf));
  return 0.5 * x * (1.0 + Tanh(TanhArgument(x, x * x * x)));
}

Value GeluBackward(Builder& b, Value grad, Value input, GeluForm form) {
  const Expression g(b, grad), x(b, input);
  if (form == GeluForm::kErf) {
    const Expression cdf = 0.5 * (1.0 + Erf(x * kSqrtHalf));
    const Expression pdf = kTwoOverSqrtPi * kSqrtHalf * 0.5 * Exp(x * x * -0.5);
    return g * Fma(x, pdf, cdf);
  }
  const Expression x_square = x * x;
  const Expression t = Tanh(TanhArgument(x, x_square * x));
  const Expression left = 0.5 * x;
  const Expression left_derivative = 0.5 * (1.0 + t);
  const Expression tanh_derivative = Fma(-t, t, x.Number(1));
  const Expression three_cubes = 3.0 * x.Number(kTanhCube);
  const Expression argument_derivative = kTanhScale * Fma(three_cubes, x_square, x.Number(1));
  return g * Fma(left * tanh_derivative, argument_derivative, left_derivative);
}

Value Elu(Builder& b, Value input, Value alpha, Value scale, Value input_scale) {
  const Expression x(b, input), a(b, alpha), s(b, scale), i(b, input_scale);
  return Where(x <= 0.0, Unary(Op::kExpm1, x * i) * (a * s), x * s);
}

Value EluBackward(Builder& b, Value grad, Value alpha, Value scale, Value input_scale, bool is_result, Value input) {
  const Expression g(b, grad), x(b, input), s(b, scale), i(b, input_scale);
  const Expression a = Expression(b, alpha) * s;
  const Expression negative = is_result ? g * i * (x + a) : g * i * a * Exp(x * i);
  return Where(x <= 0.0, negative, g * s);
}

Value Softplus(Builder& b, Value input, Value beta, Value threshold) {
  const Expression x(b, input), scale(b, beta), limit(b, threshold);
  const Expression scaled = x * scale;
  return Where(scaled > limit, x, Log1p(Exp(scaled)) / scale);
}

Value SoftplusBackward(Builder& b, Value grad, Value input, Value beta, Value threshold) {
  const Expression g(b, grad), x(b, input), scale(b, beta), limit(b, threshold);
  const Expression scaled = x * scale;
  const Expression z = Exp(scaled);
  return Where(scaled > limit, g, g * z / (z + 1.0));
}

Value Mish(Builder& b, Value input) {
  const Expression x(b, input);
  return x * Tanh(Log1p(Exp(x)));
}

Value MishBackward(Builder& b, Value grad, Value input) {
  const Expression g(b, grad), x(b, input);
  const Expression t = Tanh(Log1p(Exp(x)));
  return g * (t + x * SigmoidOf(x) * (1.0 - t * t));
}

Value Hardswish(Builder& b, Value input) {
  const Expression x(b, input);
  return x * Min(Max(x + 3.0, 0.0), 6.0) / 6.0;
}

Value HardswishBackward(Builder& b, Value grad, Value input) {
  const Expression g(b, grad), x(b, input);
  const Expression inside = Where(x < 3.0, g * (x / 3.0 + 0.5), g);
  return Where(x <= -3.0, g.Number(0), inside);
}

Value Hardsigmoid(Builder& b, Value input) {
  const Expression x(b, input);
  return Min(Max(x + 3.0, 0.0), 6.0) / 6.0;
}

Value HardsigmoidBackward(Builder& b, Value grad, Value input) {
  const Expression g(b, grad), x(b, input);
  return Where(Binary(Op::kAnd, x > -3.0, x < 3.0), g * (1.0 / 6.0), g.Number(0));
}

}  // namespace torch_lazy::ir::decompose
