// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/_convolution.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/linear_backward.h>
#include <ATen/ops/zeros.h>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

TEST(Linear, IsEagers) {
  const at::Tensor weight = at::randn({5, 3}), bias = at::randn({5});
  for (const at::Tensor& x : {at::randn({3}), at::randn({4, 3}), at::randn({2, 4, 3}), at::randn({3, 4}).t()}) {
    ExpectSame(at::linear(ToLazy(x), ToLazy(weight), ToLazy(bias)), at::linear(x, weight, bias));
    ExpectSame(at::linear(ToLazy(x), ToLazy(weight)), at::linear(x, weight));
  }
}

// Eager takes a weight of one dimension, and a bias of any shape that broadcasts.
TEST(Linear, GradientsOfUnusualShapes) {
  const at::Tensor x = at::randn({4, 3});
  const std::vector<std::pair<at::Tensor, at::Tensor>> cases = {
      {at::randn({3}), {}}, {at::randn({4, 3}), at::randn({4, 4})}, {at::randn({4, 3}), at::randn({1})}};
  for (const auto& [weight, bias] : cases) {
    std::vector<at::Tensor> grads[2];
    for (const bool lazy : {false, true}) {
      for (const at::Tensor& operand : {x, weight, bias}) {
        if (operand.defined()) grads[lazy].push_back((lazy ? ToLazy(operand) : operand.clone()).requires_grad_());
      }
      std::vector<at::Tensor>& leaves = grads[lazy];
      at::linear(leaves[0], leaves[1], leaves.size() > 2 ? leaves[2] : at::Tensor()).sum().backward();
      for (at::Tensor& leaf : leaves) leaf = leaf.grad();
    }
    for (size_t i = 0; i < grads[0].size(); ++i) ExpectSame(grads[1][i], grads[0][i]);
  }
}

TEST(Linear, BackwardGivesTheProducts) {
  const at::Tensor x = at::randn({2, 4, 3}), weight = at::randn({5, 3}), grad = at::randn({2, 4, 5});
  const auto [grad_x, grad_weight, grad_bias] =
      at::linear_backward(ToLazy(x), ToLazy(grad), ToLazy(weight), {true, true, true});
  ExpectSame(grad_x, grad.matmul(weight));
  ExpectSame(grad_weight, grad.view({8, 5}).t().mm(x.view({8, 3})));
  ExpectSame(grad_bias, grad.view({8, 5}).sum(0));
  const auto partly = at::linear_backward(ToLazy(x), ToLazy(grad), ToLazy(weight), {false, true, false});
  EXPECT_FALSE(std::get<0>(partly).defined());
  EXPECT_TRUE(std::get<1>(partly).defined());
  EXPECT_FALSE(std::get<2>(partly).defined());
}

TEST(Linear, BackwardOfNothing) {
  for (const auto& [features, results] : std::vector<std::pair<int64_t, int64_t>>{{0, 5}, {3, 0}, {0, 0}}) {
    const at::Tensor x = at::randn({2, 4, features}), weight = at::randn({results, features}),
                     grad = at::randn({2, 4, results});
    const auto [grad_x, grad_weight, grad_bias] =
        at::linear_backward(ToLazy(x), ToLazy(grad), ToLazy(weight), {true, true, true});
    ExpectSame(grad_x, grad.matmul(weight));
    ExpectSame(grad_weight, at::zeros({results, features}));
    ExpectSame(grad_bias, grad.sum(at::IntArrayRef{0, 1}));
  }
}

TEST(Convolution, IsEagersForwardAndBackward) {
  const at::Tensor x = at::randn({2, 3, 8, 8}), weight = at::randn({4, 3, 3, 3}), bias = at::randn({4});
  const at::Tensor y = at::convolution(x, weight, bias, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1);
  ExpectSame(at::convolution(ToLazy(x), ToLazy(weight), ToLazy(bias), {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1), y);
  ExpectSame(at::_convolution(ToLazy(x), ToLazy(weight), ToLazy(bias), {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1, false,
                              false, true, true),
             y);
  const auto cpu = at::convolution_backward(y, x, weight, at::IntArrayRef{4}, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1,
                                            {true, true, true});
  const auto lazy = at::convolution_backward(ToLazy(y), ToLazy(x), ToLazy(weight), at::IntArrayRef{4}, {1, 1}, {1, 1},
                                             {1, 1}, false, {0, 0}, 1, {true, true, true});
  ExpectSame(std::get<0>(lazy), std::get<0>(cpu));
  ExpectSame(std::get<1>(lazy), std::get<1>(cpu));
  ExpectSame(std::get<2>(lazy), std::get<2>(cpu));
}

}  // namespace
}  // namespace torch_lazy::device
