// SPDX-License-Identifier: Apache-2.0
// What a GPU's short functions lose is lost in rounding to 16 bits: for all bf16 numbers, against exact results.
#include <cmath>
#include <cstring>
#include <limits>

#include "gtest/gtest.h"
#include "ir/builder.h"
#include "ir/decompose/activation.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

using ir::DType;
using ir::Value;

constexpr double kSmallestNormal = std::numeric_limits<float>::min();

// All that are finite.
std::vector<double> Bf16Numbers() {
  std::vector<double> numbers;
  for (uint32_t bits = 0; bits < 1u << 16; ++bits) {
    const uint32_t wide = bits << 16;
    float number;
    std::memcpy(&number, &wide, sizeof(number));
    if (std::isfinite(number)) numbers.push_back(number);
  }
  return numbers;
}

// Half a unit in the last place of bf16, and a hundredth; below normal numbers there may be zeros.
double HalfUnit(double exact) {
  return 0.51 * std::exp2(std::floor(std::log2(std::max(std::abs(exact), kSmallestNormal))) - 7) +
         (std::abs(exact) < 2 * kSmallestNormal ? kSmallestNormal : 0);
}

// `use` of each, computed in f32 and rounded; the exact result and what more may be lost come from `exact`.
template <typename Use, typename Exact>
void Check(Use use, Exact exact) {
  const std::vector<double> numbers = Bf16Numbers();
  ir::Builder b;
  const Value x = b.Param({DType::kBF16, {ir::Extent::Symbol(0)}});
  const ir::Graph graph = b.Finish({{b.Cast(use(b, b.Cast(x, DType::kF32)), DType::kBF16)}});
  const int64_t count = static_cast<int64_t>(numbers.size());
  ir::EvaluateInputs inputs = RandomInputs(graph, {count}, 1);
  inputs.params[0] = ir::MakeFloats(DType::kBF16, {count}, numbers);
  const std::vector<ir::HostValue> actual = RunPlan(graph, *Compile(graph, OptionsFor({count})), &inputs);
  for (int64_t k = 0; k < count; ++k) {
    const auto [result, more] = exact(numbers[k]);
    ASSERT_LE(std::abs(actual[0].floats[k] - result), HalfUnit(result) + more) << numbers[k] << ": " << result;
  }
}

double Cdf(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }
double Pdf(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0)); }

// Where erf is near -1, f32 has lost all digits of 1 + erf (eager, too); these functions keep them.
TEST(Precision, OfGelu) {
  Check([](ir::Builder& b, Value x) { return ir::decompose::Gelu(b, x, ir::decompose::GeluForm::kErf); },
        [](double x) { return std::pair(x * Cdf(x), 0.0); });
}

// Its two terms may cancel: each is 1e-5 of itself off.
TEST(Precision, OfGelusGradient) {
  Check([](ir::Builder& b,
           Value x) { return ir::decompose::GeluBackward(b, b.Like(x, 1.0), x, ir::decompose::GeluForm::kErf); },
        [](double x) {
          const double density = std::abs(x) > 1e18 ? 0 : x * Pdf(x);
          return std::pair(Cdf(x) + density, 1e-5 * (Cdf(x) + std::abs(density)));
        });
}

// Up to the largest number that has a result.
TEST(Precision, OfExponentials) {
  Check([](ir::Builder& b, Value x) { return b.Unary(ir::Op::kExp, b.Binary(ir::Op::kMin, x, b.Like(x, 88.0))); },
        [](double x) { return std::pair(std::exp(std::min(x, 88.0)), 0.0); });
}

}  // namespace
}  // namespace torch_lazy::codegen
