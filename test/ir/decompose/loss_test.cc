// SPDX-License-Identifier: Apache-2.0
#include "ir/decompose/loss.h"

#include "gmock/gmock.h"
#include "test/ir/decompose/formula.h"

namespace torch_lazy::ir::decompose {
namespace {

using Values = const std::vector<Value>&;
using testing::DoubleNear;
using testing::ElementsAre;
constexpr Reduction kReductions[] = {Reduction::kNone, Reduction::kMean, Reduction::kSum};

// A gradient for a loss of elements of these sizes.
HostValue GradFor(Reduction reduction, const std::vector<int64_t>& sizes) {
  return Random(reduction == Reduction::kNone ? sizes : std::vector<int64_t>{}, 9);
}

struct PointwiseLoss {
  const char* name;
  std::function<Value(Builder&, Value, Value, Reduction)> forward;
  std::function<Value(Builder&, Value, Value, Value, Reduction)> backward;
  double (*meaning)(double x, double t);
};
const PointwiseLoss kLosses[] = {
    {"mse", MseLoss, MseLossBackward, [](double x, double t) { return (x - t) * (x - t); }},
    {"smooth_l1", [](Builder& b, Value x, Value t, Reduction r) { return SmoothL1Loss(b, x, t, r, Number(b, 0.3)); },
     [](Builder& b, Value g, Value x, Value t, Reduction r) {
       return SmoothL1LossBackward(b, g, x, t, r, Number(b, 0.3));
     },
     [](double x, double t) {
       const double z = std::abs(x - t);
       return z < 0.3 ? z * z / 0.6 : z - 0.15;
     }},
    {"huber", [](Builder& b, Value x, Value t, Reduction r) { return HuberLoss(b, x, t, r, Number(b, 0.3)); }, nullptr,
     [](double x, double t) {
       const double z = std::abs(x - t);
       return z <= 0.3 ? z * z / 2 : 0.3 * (z - 0.15);
     }},
    {"bce", [](Builder& b, Value x, Value t, Reduction r) { return BinaryCrossEntropy(b, x, t, kNoValue, r); },
     [](Builder& b, Value g, Value x, Value t, Reduction r) {
       return BinaryCrossEntropyBackward(b, g, x, t, kNoValue, r);
     },
     [](double x, double t) { return -t * std::log(x) - (1 - t) * std::log(1 - x); }},
    {"bce_with_logits",
     [](Builder& b, Value x, Value t, Reduction r) {
       return BinaryCrossEntropyWithLogits(b, x, t, kNoValue, Number(b, 2.5), r);
     },
     nullptr,
     [](double x, double t) {
       const double p = 1 / (1 + std::exp(-x));
       return -2.5 * t * std::log(p) - (1 - t) * std::log(1 - p);
     }},
};

class PointwiseLosses : public testing::TestWithParam<PointwiseLoss> {};

TEST_P(PointwiseLosses, MeanWhatTheySay) {
  const HostValue x = Random({3, 4}, 1, 0.05, 0.95), t = Random({3, 4}, 2, 0.05, 0.95);
  HostValue each = x;
  double sum = 0;
  for (size_t i = 0; i < 12; ++i) sum += each.floats[i] = GetParam().meaning(x.floats[i], t.floats[i]);
  const Formula formula = [](Builder& b, Values in) {
    std::vector<Value> losses;
    for (Reduction r : kReductions) losses.push_back(GetParam().forward(b, in[0], in[1], r));
    return losses;
  };
  const std::vector<HostValue> losses = Apply(formula, {x, t});
  ExpectNear(losses[0], each, 1e-14);
  ExpectNear(losses[1], F64({}, {sum / 12}), 1e-14);
  ExpectNear(losses[2], F64({}, {sum}), 1e-14);
}

TEST_P(PointwiseLosses, HaveTheGradientOfTheirFunction) {
  if (!GetParam().backward) GTEST_SKIP() << "no gradient here";
  const HostValue x = Random({3, 4}, 1, 0.05, 0.95), t = Random({3, 4}, 2, 0.05, 0.95);
  for (Reduction r : kReductions) {
    const HostValue g = GradFor(r, {3, 4});
    const Formula forward = [&](Builder& b, Values in) { return std::vector{GetParam().forward(b, in[0], in[1], r)}; };
    const Formula backward = [&](Builder& b, Values in) {
      return std::vector{GetParam().backward(b, in[0], in[1], in[2], r)};
    };
    ExpectNear(Apply(backward, {g, x, t})[0], Difference(forward, {x, t}, 0, g));
  }
}

INSTANTIATE_TEST_SUITE_P(All, PointwiseLosses, testing::ValuesIn(kLosses),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(BinaryCrossEntropy, BoundsItsLogarithms) {
  const Formula formula = [](Builder& b, Values in) {
    return std::vector{BinaryCrossEntropy(b, in[0], in[1], kNoValue, Reduction::kNone)};
  };
  EXPECT_THAT(Apply(formula, {F64({2}, {0, 1}), F64({2}, {1, 0})})[0].floats, ElementsAre(100, 100));
}

// --- nll_loss ---

constexpr int64_t kIgnored = -100;
Value Ignored(Builder& b) { return b.Const(DType::kI64, kIgnored); }

TEST(NllLoss, PicksTheTargetsClass) {
  const HostValue x = F64({3, 2}, {-1, -2, -3, -4, -5, -6}), t = I64({3}, {1, kIgnored, 0});
  const Formula formula = [](Builder& b, Values in) {
    std::vector<Value> out;
    for (Reduction r : kReductions) {
      for (Value weight : {kNoValue, in[2]}) {
        const NllLossResult result = NllLoss(b, in[0], in[1], weight, r, Ignored(b));
        out.insert(out.end(), {result.loss, result.total_weight});
      }
    }
    return out;
  };
  const std::vector<HostValue> out = Apply(formula, {x, t, F64({2}, {3, 0.5})});
  EXPECT_THAT(out[0].floats, ElementsAre(2, 0, 5));
  EXPECT_THAT(out[2].floats, ElementsAre(1, 0, 15));
  EXPECT_THAT(out[4].floats, ElementsAre(3.5));
  EXPECT_THAT(out[5].floats, ElementsAre(2));
  EXPECT_THAT(out[6].floats, ElementsAre(DoubleNear(16 / 3.5, 1e-15)));
  EXPECT_THAT(out[7].floats, ElementsAre(3.5));
  EXPECT_THAT(out[8].floats, ElementsAre(7));
  EXPECT_THAT(out[10].floats, ElementsAre(16));
}

TEST(NllLoss, IsNotANumberIfAllIsIgnored) {
  const Formula formula = [](Builder& b, Values in) {
    return std::vector{NllLoss(b, in[0], in[1], kNoValue, Reduction::kMean, Ignored(b)).loss};
  };
  EXPECT_THAT(Apply(formula, {F64({1, 2}, {-1, -2}), I64({1}, {kIgnored})})[0].floats, ElementsAre(testing::IsNan()));
}

TEST(NllLoss, DoesNotMultiplyInfinities) {
  const double inf = std::numeric_limits<double>::infinity();
  const Formula formula = [](Builder& b, Values in) {
    return std::vector{NllLoss(b, in[0], in[1], kNoValue, Reduction::kSum, Ignored(b)).loss};
  };
  EXPECT_THAT(Apply(formula, {F64({1, 2}, {-inf, -2}), I64({1}, {1})})[0].floats, ElementsAre(2));
}

TEST(NllLoss, HasTheGradientOfItsFunction) {
  struct Case {
    std::vector<int64_t> sizes, target_sizes, targets;
  };
  for (const Case& c :
       {Case{{3, 4}, {3}, {1, kIgnored, 3}}, Case{{4}, {}, {2}}, Case{{2, 3, 2}, {2, 2}, {0, 1, 2, kIgnored}}}) {
    const HostValue x = Random(c.sizes, 1), t = I64(c.target_sizes, c.targets);
    const HostValue w = Random({c.sizes.size() == 1 ? c.sizes[0] : c.sizes[1]}, 2, 0.5, 2);
    for (Reduction r : kReductions) {
      for (bool weighted : {false, true}) {
        const HostValue g = GradFor(r, c.target_sizes);
        const Formula forward = [&](Builder& b, Values in) {
          return std::vector{NllLoss(b, in[0], in[1], weighted ? in[2] : kNoValue, r, Ignored(b)).loss};
        };
        const Formula backward = [&](Builder& b, Values in) {
          const Value weight = weighted ? in[2] : kNoValue;
          const Value total = NllLoss(b, in[0], in[1], weight, r, Ignored(b)).total_weight;
          return std::vector{NllLossBackward(b, in[3], in[0], in[1], weight, r, Ignored(b), total)};
        };
        ExpectNear(Apply(backward, {x, t, w, g})[0], Difference(forward, {x, t, w}, 0, g));
      }
    }
  }
}

}  // namespace
}  // namespace torch_lazy::ir::decompose
