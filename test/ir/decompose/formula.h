// SPDX-License-Identifier: Apache-2.0
// Evaluates decompositions, and compares gradients with differences of the forward function.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ir/builder.h"
#include "ir/verify.h"
#include "test/ir/outputs.h"

namespace torch_lazy::ir::decompose {

using Formula = std::function<std::vector<Value>(Builder&, const std::vector<Value>&)>;

// Sizes become symbols as in a trace: 0 and 1 stay, equal numbers share a symbol.
inline std::vector<HostValue> Apply(const Formula& formula, const std::vector<HostValue>& inputs) {
  Builder b;
  std::vector<int64_t> symbols;
  std::vector<Value> params;
  for (const HostValue& input : inputs) {
    Type type{input.dtype, {}};
    for (int64_t size : input.sizes) {
      const auto found = std::find(symbols.begin(), symbols.end(), size);
      const auto symbol = static_cast<int32_t>(found - symbols.begin());
      if (size > 1 && found == symbols.end()) symbols.push_back(size);
      type.dims.push_back(size > 1 ? Extent::Symbol(symbol) : Extent::Constant(size));
    }
    params.push_back(b.Param(type));
  }
  std::vector<Output> outputs;
  for (Value value : formula(b, params)) outputs.push_back({value});
  const Graph graph = b.Finish(std::move(outputs));
  EXPECT_TRUE(Verify(graph).ok()) << Verify(graph);
  return OutputsOf(graph, inputs, symbols);
}

// Not too near 0, where many functions have a corner.
inline HostValue Random(std::vector<int64_t> sizes, int seed, double low = -3, double high = 3) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(low, high);
  HostValue value = MakeHostValue(DType::kF64, std::move(sizes));
  for (double& number : value.floats) {
    do {
      number = uniform(generator);
    } while (std::abs(number) < 0.01);
  }
  return value;
}

inline double Dot(const HostValue& a, const HostValue& b) {
  EXPECT_EQ(a.sizes, b.sizes);
  double sum = 0;
  for (size_t i = 0; i < a.floats.size(); ++i) sum += a.floats[i] * b.floats[i];
  return sum;
}

// The gradient of sum(grad * forward(inputs)[0]) with respect to inputs[which], by central
// differences.
inline HostValue Difference(const Formula& forward, std::vector<HostValue> inputs, size_t which,
                            const HostValue& grad) {
  constexpr double kStep = 1e-5;
  HostValue result = MakeHostValue(DType::kF64, inputs[which].sizes);
  for (size_t i = 0; i < result.floats.size(); ++i) {
    const double x = inputs[which].floats[i];
    inputs[which].floats[i] = x + kStep;
    const double above = Dot(grad, Apply(forward, inputs)[0]);
    inputs[which].floats[i] = x - kStep;
    const double below = Dot(grad, Apply(forward, inputs)[0]);
    inputs[which].floats[i] = x;
    result.floats[i] = (above - below) / (2 * kStep);
  }
  return result;
}

inline void ExpectNear(const HostValue& actual, const HostValue& expected, double tolerance = 1e-7) {
  ASSERT_EQ(actual.sizes, expected.sizes);
  for (size_t i = 0; i < expected.floats.size(); ++i) {
    EXPECT_NEAR(actual.floats[i], expected.floats[i], tolerance * std::max(1.0, std::abs(expected.floats[i])))
        << "element " << i;
  }
}

inline Value Number(Builder& b, double number) { return b.Const(DType::kF64, number); }

}  // namespace torch_lazy::ir::decompose
