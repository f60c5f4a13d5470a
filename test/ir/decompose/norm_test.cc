// SPDX-License-Identifier: Apache-2.0
#include "ir/decompose/norm.h"

#include "gmock/gmock.h"
#include "test/ir/decompose/formula.h"

namespace torch_lazy::ir::decompose {
namespace {

using Values = const std::vector<Value>&;
using testing::DoubleNear;
using testing::ElementsAre;
constexpr double kEps = 1e-3;

// --- layer norm ---

Formula LayerNormOver(int axis) {
  return [=](Builder& b, Values in) {
    const Normalized n = LayerNorm(b, in[0], axis, in[1], in[2], Number(b, kEps));
    return std::vector{n.y, n.mean, n.rstd};
  };
}

TEST(LayerNorm, HasMeanBiasAndDeviationWeight) {
  const HostValue x = F64({2, 4}, {1, 2, 3, 4, 10, 20, 30, 40});
  const std::vector<HostValue> out = Apply(LayerNormOver(1), {x, F64({4}, {1, 1, 1, 2}), F64({4}, {0, 0, 0, 7})});
  const double r = 1 / std::sqrt(1.25 + kEps);
  EXPECT_THAT(out[0].floats[0], DoubleNear(-1.5 * r, 1e-14));
  EXPECT_THAT(out[0].floats[3], DoubleNear(1.5 * r * 2 + 7, 1e-14));
  EXPECT_THAT(out[1].sizes, ElementsAre(2, 1));
  EXPECT_THAT(out[1].floats, ElementsAre(2.5, 25));
  EXPECT_THAT(out[2].floats[0], DoubleNear(r, 1e-15));
}

TEST(LayerNorm, HasTheGradientOfItsFunction) {
  const std::vector<HostValue> in = {Random({2, 3, 4}, 1), Random({3, 4}, 2), Random({3, 4}, 3)};
  const HostValue g = Random({2, 3, 4}, 4);
  const Formula backward = [](Builder& b, Values in) {
    const Normalized n = LayerNorm(b, in[0], 1, in[1], in[2], Number(b, kEps));
    const NormGradients d = LayerNormBackward(b, in[3], in[0], 1, n.mean, n.rstd, in[1]);
    return std::vector{d.x, d.weight, d.bias};
  };
  const std::vector<HostValue> d = Apply(backward, {in[0], in[1], in[2], g});
  for (size_t k : {0, 1, 2}) ExpectNear(d[k], Difference(LayerNormOver(1), in, k, g));
}

TEST(LayerNorm, WorksWithoutWeightAndBias) {
  const HostValue x = Random({3, 5}, 1), g = Random({3, 5}, 2);
  const Formula forward = [](Builder& b, Values in) {
    return std::vector{LayerNorm(b, in[0], 1, kNoValue, kNoValue, Number(b, kEps)).y};
  };
  const Formula backward = [](Builder& b, Values in) {
    const Normalized n = LayerNorm(b, in[0], 1, kNoValue, kNoValue, Number(b, kEps));
    return std::vector{LayerNormBackward(b, in[1], in[0], 1, n.mean, n.rstd, kNoValue).x};
  };
  ExpectNear(Apply(backward, {x, g})[0], Difference(forward, {x}, 0, g));
}

// --- group norm ---

constexpr Groups kGroups = {Extent::Constant(2), Extent::Constant(3)};
const Formula kGroupNorm = [](Builder& b, Values in) {
  const Normalized n = GroupNorm(b, in[0], kGroups, in[1], in[2], Number(b, kEps));
  return std::vector{n.y, n.mean, n.rstd};
};

TEST(GroupNorm, IsLayerNormOfEachGroup) {
  const HostValue x = Random({2, 6, 5}, 1), w = F64({6}, {1, 1, 1, 1, 1, 1}), bias = F64({6}, {0, 0, 0, 0, 0, 0});
  const std::vector<HostValue> out = Apply(kGroupNorm, {x, w, bias});
  HostValue grouped = x;
  grouped.sizes = {4, 15};
  const Formula layer = [](Builder& b, Values in) {
    const Normalized n = LayerNorm(b, in[0], 1, kNoValue, kNoValue, Number(b, kEps));
    return std::vector{n.y, n.mean};
  };
  const std::vector<HostValue> expected = Apply(layer, {grouped});
  for (size_t i = 0; i < 60; ++i) EXPECT_NEAR(out[0].floats[i], expected[0].floats[i], 1e-14);
  EXPECT_THAT(out[1].sizes, ElementsAre(2, 2));
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(out[1].floats[i], expected[1].floats[i], 1e-14);
}

TEST(GroupNorm, HasTheGradientOfItsFunction) {
  const std::vector<HostValue> in = {Random({2, 6, 3}, 1), Random({6}, 2), Random({6}, 3)};
  const HostValue g = Random({2, 6, 3}, 4);
  const Formula backward = [](Builder& b, Values in) {
    const Normalized n = GroupNorm(b, in[0], kGroups, in[1], in[2], Number(b, kEps));
    const NormGradients d = GroupNormBackward(b, in[3], in[0], kGroups, n.mean, n.rstd, in[1]);
    return std::vector{d.x, d.weight, d.bias};
  };
  const std::vector<HostValue> d = Apply(backward, {in[0], in[1], in[2], g});
  for (size_t k : {0, 1, 2}) ExpectNear(d[k], Difference(kGroupNorm, in, k, g));
}

// --- batch norm ---

const Formula kBatchNorm = [](Builder& b, Values in) {
  const BatchNormTraining t =
      BatchNormForTraining(b, in[0], in[1], in[2], in[3], in[4], Number(b, 0.1), Number(b, kEps));
  return std::vector{t.normalized.y, t.normalized.mean, t.normalized.rstd, t.running_mean, t.running_variance};
};

TEST(BatchNorm, NormalizesChannelsAndUpdatesRunningStatistics) {
  const HostValue x = F64({2, 2, 2}, {1, 2, 0, 0, 3, 4, 0, 4});
  const std::vector<HostValue> out =
      Apply(kBatchNorm, {x, F64({2}, {1, 1}), F64({2}, {0, 0}), F64({2}, {10, 10}), F64({2}, {1, 1})});
  EXPECT_THAT(out[1].floats, ElementsAre(2.5, 1));
  EXPECT_THAT(out[2].floats[0], DoubleNear(1 / std::sqrt(1.25 + kEps), 1e-15));
  EXPECT_THAT(out[0].floats[0], DoubleNear(-1.5 / std::sqrt(1.25 + kEps), 1e-15));
  EXPECT_THAT(out[3].floats, ElementsAre(DoubleNear(9.25, 1e-14), DoubleNear(9.1, 1e-14)));
  EXPECT_THAT(out[4].floats, ElementsAre(DoubleNear(0.9 + 0.1 * 5 / 3, 1e-14), DoubleNear(1.3, 1e-14)));
}

TEST(BatchNorm, HasTheGradientOfItsFunctionInTraining) {
  const std::vector<HostValue> in = {Random({3, 2, 4}, 1), Random({2}, 2), Random({2}, 3), Random({2}, 4),
                                     Random({2}, 5, 1, 2)};
  const HostValue g = Random({3, 2, 4}, 6);
  const Formula backward = [](Builder& b, Values in) {
    const Normalized n =
        BatchNormForTraining(b, in[0], in[1], in[2], kNoValue, kNoValue, Number(b, 0.1), Number(b, kEps)).normalized;
    const NormGradients d = BatchNormBackward(b, in[3], in[0], n.mean, n.rstd, in[1], /*training=*/true);
    return std::vector{d.x, d.weight, d.bias};
  };
  const std::vector<HostValue> d = Apply(backward, {in[0], in[1], in[2], g});
  for (size_t k : {0, 1, 2}) ExpectNear(d[k], Difference(kBatchNorm, in, k, g));
}

TEST(BatchNorm, HasTheGradientOfItsFunctionInInference) {
  const std::vector<HostValue> in = {Random({3, 2}, 1), Random({2}, 2), Random({2}, 3), Random({2}, 4),
                                     Random({2}, 5, 1, 2)};
  const HostValue g = Random({3, 2}, 6);
  const Formula forward = [](Builder& b, Values in) {
    return std::vector{BatchNormForInference(b, in[0], in[1], in[2], in[3], in[4], Number(b, kEps))};
  };
  const Formula backward = [](Builder& b, Values in) {
    const Value rstd = Rstd(b, in[4], Number(b, kEps));
    const NormGradients d = BatchNormBackward(b, in[5], in[0], in[3], rstd, in[1], /*training=*/false);
    return std::vector{d.x, d.weight, d.bias};
  };
  const std::vector<HostValue> d = Apply(backward, {in[0], in[1], in[2], in[3], in[4], g});
  for (size_t k : {0, 1, 2}) ExpectNear(d[k], Difference(forward, in, k, g));
}

}  // namespace
}  // namespace torch_lazy::ir::decompose
