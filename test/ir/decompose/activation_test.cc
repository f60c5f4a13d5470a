// SPDX-License-Identifier: Apache-2.0
#include "ir/decompose/activation.h"

#include <limits>

#include "gmock/gmock.h"
#include "test/ir/decompose/formula.h"

namespace torch_lazy::ir::decompose {
namespace {

using testing::ElementsAre;
using testing::IsNan;
using Values = const std::vector<Value>&;

struct Activation {
  const char* name;
  std::function<Value(Builder&, Value)> forward;
  std::function<Value(Builder&, Value, Value)> backward;  // of grad and operand
  double (*meaning)(double);
};

double Sig(double x) { return 1 / (1 + std::exp(-x)); }
constexpr double kPi = 3.14159265358979323846;

const Activation kActivations[] = {
    {"relu", Relu, [](Builder& b, Value g, Value x) { return ThresholdBackward(b, g, x, Number(b, 0)); },
     [](double x) { return x > 0 ? x : 0; }},
    {"hardtanh", [](Builder& b, Value x) { return Clamp(b, x, Number(b, -1), Number(b, 2)); },
     [](Builder& b, Value g, Value x) { return HardtanhBackward(b, g, x, Number(b, -1), Number(b, 2)); },
     [](double x) { return std::min(std::max(x, -1.0), 2.0); }},
    {"leaky_relu", [](Builder& b, Value x) { return LeakyRelu(b, x, Number(b, 0.1)); },
     [](Builder& b, Value g, Value x) { return LeakyReluBackward(b, g, x, Number(b, 0.1)); },
     [](double x) { return x > 0 ? x : 0.1 * x; }},
    {"sigmoid", Sigmoid, [](Builder& b, Value g, Value x) { return SigmoidBackward(b, g, Sigmoid(b, x)); }, Sig},
    {"tanh", [](Builder& b, Value x) { return b.Unary(Op::kTanh, x); },
     [](Builder& b, Value g, Value x) { return TanhBackward(b, g, b.Unary(Op::kTanh, x)); },
     [](double x) { return std::tanh(x); }},
    {"log_sigmoid", LogSigmoid, LogSigmoidBackward, [](double x) { return std::log(Sig(x)); }},
    {"silu", Silu, SiluBackward, [](double x) { return x * Sig(x); }},
    {"gelu", [](Builder& b, Value x) { return Gelu(b, x, GeluForm::kErf); },
     [](Builder& b, Value g, Value x) { return GeluBackward(b, g, x, GeluForm::kErf); },
     [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }},
    {"gelu_tanh", [](Builder& b, Value x) { return Gelu(b, x, GeluForm::kTanh); },
     [](Builder& b, Value g, Value x) { return GeluBackward(b, g, x, GeluForm::kTanh); },
     [](double x) { return x * Sig(2 * std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x)); }},
    {"elu", [](Builder& b, Value x) { return Elu(b, x, Number(b, 1.3), Number(b, 2), Number(b, 0.7)); },
     [](Builder& b, Value g, Value x) {
       return EluBackward(b, g, Number(b, 1.3), Number(b, 2), Number(b, 0.7), false, x);
     },
     [](double x) { return 2 * (x > 0 ? x : 1.3 * (std::exp(0.7 * x) - 1)); }},
    {"elu_of_result", [](Builder& b, Value x) { return Elu(b, x, Number(b, 1.3), Number(b, 2), Number(b, 0.7)); },
     [](Builder& b, Value g, Value x) {
       const Value y = Elu(b, x, Number(b, 1.3), Number(b, 2), Number(b, 0.7));
       return EluBackward(b, g, Number(b, 1.3), Number(b, 2), Number(b, 0.7), true, y);
     },
     [](double x) { return 2 * (x > 0 ? x : 1.3 * (std::exp(0.7 * x) - 1)); }},
    {"softplus", [](Builder& b, Value x) { return Softplus(b, x, Number(b, 1.5), Number(b, 3)); },
     [](Builder& b, Value g, Value x) { return SoftplusBackward(b, g, x, Number(b, 1.5), Number(b, 3)); },
     [](double x) { return 1.5 * x > 3 ? x : std::log(1 + std::exp(1.5 * x)) / 1.5; }},
    {"hardswish", Hardswish, HardswishBackward, [](double x) { return x < -3  ? 0
                                                                      : x > 3 ? x
                                                                              : x * (x + 3) / 6; }},
    {"hardsigmoid", Hardsigmoid, HardsigmoidBackward, [](double x) { return x < -3  ? 0
                                                                            : x > 3 ? 1
                                                                                    : (x + 3) / 6; }},
    {"mish", Mish, MishBackward, [](double x) { return x * std::tanh(std::log(1 + std::exp(x))); }},
};

class Activations : public testing::TestWithParam<Activation> {};

TEST_P(Activations, MeanWhatTheySay) {
  const HostValue x = Random({2, 50}, /*seed=*/1, -5, 5);
  HostValue expected = x;
  for (double& number : expected.floats) number = GetParam().meaning(number);
  const Formula forward = [](Builder& b, Values in) { return std::vector{GetParam().forward(b, in[0])}; };
  ExpectNear(Apply(forward, {x})[0], expected, 1e-14);
}

TEST_P(Activations, HaveTheGradientOfTheirFunction) {
  if (!GetParam().backward) GTEST_SKIP() << "no gradient here";
  const HostValue x = Random({2, 50}, /*seed=*/2, -5, 5), g = Random({2, 50}, /*seed=*/3);
  const Formula forward = [](Builder& b, Values in) { return std::vector{GetParam().forward(b, in[0])}; };
  const Formula backward = [](Builder& b, Values in) { return std::vector{GetParam().backward(b, in[0], in[1])}; };
  ExpectNear(Apply(backward, {g, x})[0], Difference(forward, {x}, 0, g));
}

INSTANTIATE_TEST_SUITE_P(All, Activations, testing::ValuesIn(kActivations),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Activation, KeepsNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Formula formula = [](Builder& b, Values in) {
    return std::vector{Relu(b, in[0]), Clamp(b, in[0], Number(b, 0), kNoValue), Clamp(b, in[0], kNoValue, Number(b, 1)),
                       Hardswish(b, in[0])};
  };
  for (const HostValue& y : Apply(formula, {F64({1}, {nan})})) EXPECT_THAT(y.floats, ElementsAre(IsNan()));
}

TEST(Activation, DoesNotOverflowInLogSigmoid) {
  const Formula formula = [](Builder& b, Values in) { return std::vector{LogSigmoid(b, in[0])}; };
  EXPECT_THAT(Apply(formula, {F64({2}, {-1000, 1000})})[0].floats, ElementsAre(-1000, 0));
}

// 1 - y * y with one rounding, as eager: with two it would be 0.
TEST(Activation, FusesTheGradientOfTanh) {
  const Formula formula = [](Builder& b, Values in) { return std::vector{TanhBackward(b, in[0], in[1])}; };
  const double y = 1 - 0x1p-24;
  EXPECT_EQ(Apply(formula, {F32({}, {1}), F32({}, {y})})[0].floats[0], static_cast<float>(1 - y * y));
}

}  // namespace
}  // namespace torch_lazy::ir::decompose
