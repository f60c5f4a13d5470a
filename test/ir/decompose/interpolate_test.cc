// SPDX-License-Identifier: Apache-2.0
#include "ir/decompose/interpolate.h"

#include "gmock/gmock.h"
#include "test/ir/decompose/formula.h"

namespace torch_lazy::ir::decompose {
namespace {

using Values = const std::vector<Value>&;
using testing::ElementsAre;

const Formula kLerp = [](Builder& b, Values in) { return std::vector{Lerp(b, in[0], in[1], in[2])}; };

TEST(Lerp, GivesTheEndsExactly) {
  const HostValue x = F32({2}, {1e8, 0.1}), y = F32({2}, {0.3, 3e-9});
  EXPECT_EQ(Apply(kLerp, {x, y, F32({}, {0})})[0].floats, x.floats);
  EXPECT_EQ(Apply(kLerp, {x, y, F32({}, {1})})[0].floats, y.floats);
  EXPECT_THAT(Apply(kLerp, {F32({2}, {1, 1}), F32({2}, {3, 3}), F32({2}, {0.25, 0.75})})[0].floats,
              ElementsAre(1.5, 2.5));
}

// Numbers for which one rounding and two differ.
TEST(Interpolate, FusesAsEager) {
  const double e = 0x1p-12;  // (1 + e)^2 = 1 + 2e + e^2 does not fit f32
  const HostValue a = F32({}, {1 + e}), minus = F32({}, {-(1 + 2 * e)}), one = F32({}, {1});
  const Formula addcmul = [](Builder& b, Values in) { return std::vector{Addcmul(b, in[0], in[1], in[2], in[3])}; };
  EXPECT_EQ(Apply(addcmul, {minus, a, a, one})[0].floats[0], e * e);
  const Formula addcdiv = [](Builder& b, Values in) { return std::vector{Addcdiv(b, in[0], in[1], in[2], in[3])}; };
  EXPECT_EQ(Apply(addcdiv, {minus, a, one, a})[0].floats[0], 0);
  EXPECT_EQ(Apply(addcdiv, {one, F32({}, {6}), F32({}, {4}), F32({}, {-2})})[0].floats[0], -2);
}

}  // namespace
}  // namespace torch_lazy::ir::decompose
