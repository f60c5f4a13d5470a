// SPDX-License-Identifier: Apache-2.0
#include "ir/decompose/softmax.h"

#include <limits>

#include "gmock/gmock.h"
#include "test/ir/decompose/formula.h"

namespace torch_lazy::ir::decompose {
namespace {

using Values = const std::vector<Value>&;
using testing::ElementsAre;

Formula Forward(Value (*softmax)(Builder&, Value, int), int dim) {
  return [=](Builder& b, Values in) { return std::vector{softmax(b, in[0], dim)}; };
}

TEST(Softmax, SumsToOneAlongItsDim) {
  const HostValue x = Random({3, 4, 5}, 1);
  for (int dim : {0, 1, 2}) {
    const HostValue y = Apply(Forward(Softmax, dim), {x})[0];
    const Formula total = [&](Builder& b, Values in) { return std::vector{b.Sum(in[0], {dim}, false)}; };
    const HostValue sums = Apply(total, {y})[0];
    for (double sum : sums.floats) EXPECT_NEAR(sum, 1, 1e-15);
    const HostValue log_y = Apply(Forward(LogSoftmax, dim), {x})[0];
    for (size_t i = 0; i < y.floats.size(); ++i) EXPECT_NEAR(std::exp(log_y.floats[i]), y.floats[i], 1e-15);
  }
}

TEST(Softmax, DoesNotOverflow) {
  EXPECT_THAT(Apply(Forward(Softmax, 0), {F64({2}, {1000, 1000})})[0].floats, ElementsAre(0.5, 0.5));
  EXPECT_THAT(Apply(Forward(LogSoftmax, 0), {F64({2}, {0, -1e300})})[0].floats, ElementsAre(0, -1e300));
}

TEST(Softmax, OfANumberIsOne) {
  EXPECT_THAT(Apply(Forward(Softmax, 0), {F64({}, {3})})[0].floats, ElementsAre(1));
  EXPECT_THAT(Apply(Forward(LogSoftmax, 0), {F64({}, {3})})[0].floats, ElementsAre(0));
}

TEST(Softmax, HasTheGradientOfItsFunction) {
  const HostValue x = Random({3, 4}, 1), g = Random({3, 4}, 2);
  const Formula backward = [](Builder& b, Values in) {
    return std::vector{SoftmaxBackward(b, in[0], Softmax(b, in[1], 1), 1)};
  };
  ExpectNear(Apply(backward, {g, x})[0], Difference(Forward(Softmax, 1), {x}, 0, g));
}

TEST(LogSoftmax, HasTheGradientOfItsFunction) {
  const HostValue x = Random({3, 4}, 1), g = Random({3, 4}, 2);
  const Formula backward = [](Builder& b, Values in) {
    return std::vector{LogSoftmaxBackward(b, in[0], LogSoftmax(b, in[1], 0), 0)};
  };
  ExpectNear(Apply(backward, {g, x})[0], Difference(Forward(LogSoftmax, 0), {x}, 0, g));
}

TEST(LogSumExp, SurvivesInfinities) {
  const double inf = std::numeric_limits<double>::infinity();
  const Formula formula = [](Builder& b, Values in) {
    return std::vector{LogSumExp(b, in[0], {1}, false), LogSumExp(b, in[0], {0, 1}, true)};
  };
  const std::vector<HostValue> y = Apply(formula, {F64({3, 2}, {0, 0, -inf, -inf, inf, 1})});
  EXPECT_THAT(y[0].floats, ElementsAre(testing::DoubleNear(std::log(2.0), 1e-15), -inf, inf));
  EXPECT_THAT(y[1].sizes, ElementsAre(1, 1));
  EXPECT_EQ(y[1].floats[0], inf);
}

}  // namespace
}  // namespace torch_lazy::ir::decompose
