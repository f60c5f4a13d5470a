// SPDX-License-Identifier: Apache-2.0
// What training is made of, as decomposed: how many kernels it becomes, and that they are right.
#include <functional>

#include "gtest/gtest.h"
#include "ir/builder.h"
#include "ir/decompose/activation.h"
#include "ir/decompose/loss.h"
#include "ir/decompose/norm.h"
#include "ir/decompose/softmax.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

using ir::Builder;
using ir::DType;
using ir::Extent;
using ir::Value;

const Extent kS0 = Extent::Symbol(0), kS1 = Extent::Symbol(1), kS2 = Extent::Symbol(2);

Value Param(Builder& b, const ir::Dims& dims, DType dtype = DType::kF32) { return b.Param({dtype, dims}); }
Value F32Scalar(Builder& b) { return b.Cast(b.Scalar(DType::kF64), DType::kF32); }

// Compiles, compares with the evaluator, and counts the kernels that are launched.
void Check(const ir::Graph& graph, const std::vector<std::vector<int64_t>>& symbols, size_t instances,
           Tolerance tolerance = {2e-5, 2e-5}) {
  CheckGraph(graph, symbols, tolerance);
  const absl::StatusOr<Plan> plan = Compile(graph, OptionsFor(symbols.back()));
  ASSERT_TRUE(plan.ok());
  size_t count = 0;
  for (const Step& step : plan->steps) count += step.instances.size();
  EXPECT_EQ(count, instances) << plan->ToString();
}

TEST(Idioms, LayerNormForwardIsOneKernel) {
  Builder b;
  const Value x = Param(b, {kS0, kS1}), w = Param(b, {kS1}), bias = Param(b, {kS1});
  const auto norm = ir::decompose::LayerNorm(b, x, 1, w, bias, b.Const(DType::kF32, 1e-5));
  Check(b.Finish({{norm.y}, {norm.mean}, {norm.rstd}}), {{3, 5}, {64, 384}}, 1);
}

TEST(Idioms, LayerNormBackwardIsOneForRowsAndOneForColumns) {
  Builder b;
  const Value g = Param(b, {kS0, kS1}), x = Param(b, {kS0, kS1}), mean = Param(b, {kS0, Extent::Constant(1)});
  const Value rstd = Param(b, {kS0, Extent::Constant(1)}), w = Param(b, {kS1});
  const auto grads = ir::decompose::LayerNormBackward(b, g, x, 1, mean, rstd, w);
  Check(b.Finish({{grads.x}, {grads.weight}, {grads.bias}}), {{3, 5}, {64, 384}}, 2);
}

TEST(Idioms, SoftmaxAndItsGradientAreOneKernelEach) {
  Check(
      [&] {
        Builder f;
        return f.Finish({{ir::decompose::Softmax(f, Param(f, {kS0, kS1, kS2}), 2)}});
      }(),
      {{2, 3, 5}, {4, 8, 64}}, 1);
  Check(
      [&] {
        Builder f;
        const Value g = Param(f, {kS0, kS1, kS2}), y = Param(f, {kS0, kS1, kS2});
        return f.Finish({{ir::decompose::SoftmaxBackward(f, g, y, 2)}});
      }(),
      {{2, 3, 5}, {4, 8, 64}}, 1);
}

TEST(Idioms, SoftmaxOverAMiddleDim) {
  Builder b;
  const Value x = Param(b, {kS0, kS1, kS2});
  CheckGraph(b.Finish({{ir::decompose::Softmax(b, x, 1)}}), {{2, 3, 5}, {4, 8, 64}}, {2e-5, 2e-5});
}

TEST(Idioms, BatchNormIsOneKernelAndTwoSmallUpdates) {
  Builder b;
  const Value x = Param(b, {kS0, kS1, kS2}), w = Param(b, {kS1}), bias = Param(b, {kS1});
  const Value mean = Param(b, {kS1}), variance = Param(b, {kS1});
  const auto norm =
      ir::decompose::BatchNormForTraining(b, x, w, bias, mean, variance, F32Scalar(b), b.Const(DType::kF32, 1e-5));
  const ir::Graph graph = b.Finish({{norm.normalized.y},
                                    {norm.normalized.mean},
                                    {norm.normalized.rstd},
                                    {norm.running_mean, 3},
                                    {norm.running_variance, 4}});
  Check(graph, {{2, 3, 5}, {8, 16, 49}}, 3);
}

TEST(Idioms, BatchNormBackwardIsOneKernel) {
  Builder b;
  const Value g = Param(b, {kS0, kS1, kS2}), x = Param(b, {kS0, kS1, kS2});
  const Value mean = Param(b, {kS1}), rstd = Param(b, {kS1}), w = Param(b, {kS1});
  const auto grads = ir::decompose::BatchNormBackward(b, g, x, mean, rstd, w, /*training=*/true);
  Check(b.Finish({{grads.x}, {grads.weight}, {grads.bias}}), {{2, 3, 5}, {8, 16, 49}}, 1);
}

TEST(Idioms, CrossEntropyForwardAndBackward) {
  Builder b;
  const Value logits = Param(b, {kS0, kS1}), target = Param(b, {kS0}, DType::kI64);
  const Value log_probs = ir::decompose::LogSoftmax(b, logits, 1);
  const Value ignored = b.Const(DType::kI64, -100);
  const auto loss =
      ir::decompose::NllLoss(b, log_probs, target, ir::kNoValue, ir::decompose::Reduction::kMean, ignored);
  const Value one = b.Const(DType::kF32, 1.0);
  const Value g = ir::decompose::NllLossBackward(b, one, log_probs, target, ir::kNoValue,
                                                 ir::decompose::Reduction::kMean, ignored, loss.total_weight);
  const Value dx = ir::decompose::LogSoftmaxBackward(b, g, log_probs, 1);
  Check(b.Finish({{loss.loss}, {dx}}), {{3, 8}, {64, 100}}, 3);
}

TEST(Idioms, BiasGradientAndActivationGradientShareAKernel) {
  Builder b;
  const Value g = Param(b, {kS0, kS1}), x = Param(b, {kS0, kS1});
  const Value zero = b.Like(x, 0.0);
  const Value dx = b.Where(b.Binary(ir::Op::kGt, x, zero), g, zero);
  Check(b.Finish({{dx}, {b.Sum(dx, {0}, /*keepdim=*/false)}}), {{3, 5}, {64, 384}}, 1);
}

TEST(Idioms, ClippingByTheNormOfAllGradients) {
  Builder b;
  const ir::Dims shapes[] = {{kS0, kS1}, {kS1}, {kS1, kS2}};
  std::vector<Value> params, grads;
  for (const ir::Dims& dims : shapes) params.push_back(Param(b, dims));
  for (const ir::Dims& dims : shapes) grads.push_back(Param(b, dims));
  Value total = b.Const(DType::kF32, 0.0);
  for (const Value g : grads) {
    ir::Ints all;
    for (int k = 0; k < b.rank(g); ++k) all.push_back(k);
    total = b.Add(total, b.Sum(b.Mul(g, g), all, /*keepdim=*/false));
  }
  const Value scale = b.Div(F32Scalar(b), b.Unary(ir::Op::kSqrt, total));
  std::vector<ir::Output> outputs;
  for (size_t k = 0; k < params.size(); ++k) {
    outputs.push_back({b.Sub(params[k], b.Mul(grads[k], b.FullLike(scale, grads[k]))), static_cast<int32_t>(k)});
  }
  const ir::Graph graph = b.Finish(outputs);
  CheckGraph(graph, {{3, 5, 4}, {64, 32, 16}}, {2e-5, 2e-5});
  const absl::StatusOr<Plan> plan = Compile(graph, OptionsFor({}));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->steps.size(), 2u) << plan->ToString();  // norms, then updates
}

}  // namespace
}  // namespace torch_lazy::codegen
