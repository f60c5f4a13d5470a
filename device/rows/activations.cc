// SPDX-License-Identifier: Apache-2.0
// Activation functions and their gradients: g is the gradient of the result, y the result, x the operand.
#include "ir/decompose/activation.h"

#include "device/rows/formula.h"
#include "device/rows/rows.h"
#include "device/shapes/layers.h"

namespace torch_lazy::device {
namespace {

namespace formula = ir::decompose;
using formula::GeluForm;
using ir::Op;
using String = absl::string_view;

// Formulas of tensors alone.
template <auto kFormula>
constexpr auto* Of1 = &Formula<kFloats, [](Tensor x) { return kFormula(x.builder(), x); }>;
template <auto kFormula>
constexpr auto* Of2 = &Formula<kFloats, [](Tensor g, Tensor x) { return kFormula(x.builder(), g, x); }>;

constexpr std::string_view kGeluForms[] = {"none", "tanh"};
GeluForm FormOf(String approximate) { return approximate == "tanh" ? GeluForm::kTanh : GeluForm::kErf; }

Tensor Softshrink(Tensor x, Tensor lambda) {
  return Where(x > lambda, x - lambda, Where(x < -lambda, x + lambda, x * 0.0));  // NaN stays
}

// Where the magnitude is above lambda.
Tensor ShrinkBackward(Tensor g, Tensor x, Tensor lambda) {
  const Tensor is_above = x > lambda;
  const Tensor is_below = x < -lambda;
  return Where(Binary(Op::kOr, is_below, is_above), g, g.Number(0));
}

// The second result is what ATen's own backward takes, exp(-|x|), and on a GPU nothing; ours does not read it.
bool LogSigmoid(lazy::Lowering& call) {
  if (!InClass(kFloats, call.ComputeType())) return false;
  const Tensor x = ReadAsResult(call, 0);
  call.Return(0, formula::LogSigmoid(call.b(), x));
  call.Return(1, call.Result(1).dims == x.dims() ? Exp(-Abs(x)) : x.Number(0));
  return true;
}

constexpr lazy::Row kActivationRows[] = {
    {"aten::relu", Formula<kNumbers, [](Tensor x) { return Where(x < 0.0, x.Number(0), x); }>},
    {"aten::threshold", Formula<kNumbers, [](Tensor x, Number t, Number v) { return Where(x <= t, v, x); }>},
    {"aten::threshold_backward",
     Formula<kNumbers, [](Tensor g, Tensor x, Number t) { return Where(x <= t, g.Number(0), g); }>, kSecondFirst},
    {"aten::hardtanh_backward",
     Formula<kFloats, [](Tensor g, Tensor x, Number low,
                         Number high) { return Where(Binary(Op::kAnd, x > low, x < high), g, g.Number(0)); }>},
    {"aten::leaky_relu",
     Formula<kFloats, [](Tensor x, Number slope) { return formula::LeakyRelu(x.builder(), x, slope); }>},
    {"aten::leaky_relu_backward",
     Formula<kFloats,
             [](Tensor g, Tensor x, Number slope) { return formula::LeakyReluBackward(x.builder(), g, x, slope); }>},
    {"aten::sigmoid", Of1<formula::Sigmoid>},
    {"aten::sigmoid_backward", Of2<formula::SigmoidBackward>},
    {"aten::tanh_backward", Of2<formula::TanhBackward>},
    {"aten::silu", Of1<formula::Silu>},
    {"aten::silu_backward", Of2<formula::SiluBackward>},
    {"aten::mish", Of1<formula::Mish>},
    {"aten::mish_backward", Of2<formula::MishBackward>},
    {"aten::hardswish", Of1<formula::Hardswish>},
    {"aten::hardswish_backward", Of2<formula::HardswishBackward>},
    {"aten::hardsigmoid", Of1<formula::Hardsigmoid>},
    // ATen's sixth is that of f32 in every type.
    {"aten::hardsigmoid_backward", Formula<kFloats,
                                           [](Tensor g, Tensor x) {
                                             return Where(Binary(Op::kAnd, x > -3.0, x < 3.0), g * double{1.0f / 6},
                                                          g.Number(0));
                                           }>},
    {.name = "aten::gelu",
     .lower = Formula<kFloats,
                      [](Tensor x, String approximate) { return formula::Gelu(x.builder(), x, FormOf(approximate)); }>,
     .words = kGeluForms},
    {.name = "aten::gelu_backward",
     .lower = Formula<kFloats,
                      [](Tensor g, Tensor x, String approximate) {
                        return formula::GeluBackward(x.builder(), g, x, FormOf(approximate));
                      }>,
     .words = kGeluForms},
    {"aten::elu",
     Formula<kFloats, [](Tensor x, Number alpha, Number scale,
                         Number input_scale) { return formula::Elu(x.builder(), x, alpha, scale, input_scale); }>},
    {"aten::elu_backward",
     Formula<kFloats,
             [](Tensor g, Number alpha, Number scale, Number input_scale, bool is_result, Tensor x) {
               return formula::EluBackward(x.builder(), g, alpha, scale, input_scale, is_result, x);
             }>},
    {"aten::softplus",
     Formula<kFloats, [](Tensor x, Number beta,
                         Number threshold) { return formula::Softplus(x.builder(), x, beta, threshold); }>},
    {"aten::softplus_backward",
     Formula<kFloats, [](Tensor g, Tensor x, Number beta,
                         Number threshold) { return formula::SoftplusBackward(x.builder(), g, x, beta, threshold); }>},
    {"aten::hardshrink", Formula<kFloats,
                                 [](Tensor x, Number lambda) {
                                   return Where(Binary(Op::kAnd, x >= -lambda, x <= lambda), x.Number(0), x);
                                 }>},
    {"aten::hardshrink_backward",
     Formula<kFloats, [](Tensor g, Tensor x, Number l) { return ShrinkBackward(g, x, l); }>},
    {"aten::softshrink", Formula<kFloats, [](Tensor x, Number lambda) { return Softshrink(x, lambda); }>,
     kRefusesNumbers},
    {"aten::softshrink_backward",
     Formula<kFloats, [](Tensor g, Tensor x, Number l) { return ShrinkBackward(g, x, l); }>},
    {"aten::log_sigmoid_forward", LogSigmoid, kPlain, shapes::LogSigmoid},
    {"aten::log_sigmoid_backward", Of2<formula::LogSigmoidBackward>},
    {"aten::native_dropout_backward",
     Formula<kFloats, [](Tensor g, Mask kept, Number scale) { return g * (Cast(kept, g.dtype()) * scale); }>},
    {.name = "aten::glu*", .flags = kTakesAllValues},
};

}  // namespace

Rows ActivationRows() { return kActivationRows; }

}  // namespace torch_lazy::device
