// SPDX-License-Identifier: Apache-2.0
#include "ir/decompose/statistics.h"

#include "gmock/gmock.h"
#include "test/ir/decompose/formula.h"

namespace torch_lazy::ir::decompose {
namespace {

using Values = const std::vector<Value>&;
using testing::ElementsAre;

std::vector<HostValue> Statistics(const HostValue& x, double correction, bool keepdim) {
  const Formula formula = [&](Builder& b, Values in) {
    const Ints dims = {static_cast<int64_t>(x.sizes.size()) - 1};
    const MeanAndVariance s = VarianceAndMean(b, in[0], dims, Number(b, correction), keepdim);
    return std::vector{s.mean, s.variance, Std(b, in[0], dims, Number(b, correction), keepdim)};
  };
  return Apply(formula, {x});
}

TEST(Statistics, AreThoseOfEachRow) {
  const HostValue x = F64({2, 4}, {1, 2, 3, 4, -5, -5, 5, 5});
  const std::vector<HostValue> unbiased = Statistics(x, 1, false);
  EXPECT_THAT(unbiased[0].floats, ElementsAre(2.5, 0));
  EXPECT_THAT(unbiased[1].floats, ElementsAre(testing::DoubleEq(5. / 3), testing::DoubleEq(100. / 3)));
  const std::vector<HostValue> biased = Statistics(x, 0, true);
  EXPECT_THAT(biased[1].sizes, ElementsAre(2, 1));
  EXPECT_THAT(biased[1].floats, ElementsAre(1.25, 25));
  EXPECT_THAT(biased[2].floats, ElementsAre(testing::DoubleEq(std::sqrt(1.25)), 5));
}

// The difference of large means of squares would lose all digits.
TEST(Statistics, AreExactFarFromZero) {
  EXPECT_THAT(Statistics(F64({4}, {1e9 + 1, 1e9 + 2, 1e9 + 3, 1e9 + 4}), 0, false)[1].floats, ElementsAre(1.25));
}

TEST(Statistics, OfTooFewNumbersAreNotNumbers) {
  EXPECT_THAT(Statistics(F64({1}, {3}), 1, false)[1].floats, ElementsAre(testing::IsNan()));
  EXPECT_THAT(Statistics(F64({2}, {3, 4}), 5, false)[1].floats, ElementsAre(std::numeric_limits<double>::infinity()));
}

}  // namespace
}  // namespace torch_lazy::ir::decompose
