// SPDX-License-Identifier: Apache-2.0
// Autograd and mixed precision from C++, against the CPU.
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace torch_lazy::device {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Cube : torch::autograd::Function<Cube> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, double factor) {
    context->save_for_backward({x});
    context->saved_data["factor"] = factor;
    return x.pow(3) * factor;
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const torch::Tensor x = context->get_saved_variables()[0];
    return {grads[0] * 3 * x.pow(2) * context->saved_data["factor"].toDouble(), torch::Tensor()};
  }
};

torch::Tensor Leaf(torch::IntArrayRef sizes, const torch::Device& device, torch::ScalarType type = torch::kDouble) {
  return torch::randn(sizes, type).to(device).requires_grad_();
}

variable_list CubesDerivatives(const torch::Device& device) {
  const torch::Tensor x = Leaf({5}, device);
  const torch::Tensor first =
      torch::autograd::grad({Cube::apply(x, 2.0).sum()}, {x}, {}, true, /*create_graph=*/true)[0];
  return {first, torch::autograd::grad({first.sum()}, {x})[0]};
}

variable_list GradientsSeenByHooks(const torch::Device& device) {
  const torch::Tensor x = Leaf({5}, device);
  variable_list seen;
  const torch::Tensor y = x * 2;
  y.register_hook([](const torch::Tensor& grad) { return grad * 3; });
  x.register_hook([&seen](const torch::Tensor& grad) { seen.push_back(grad.clone()); });
  y.retain_grad();
  y.exp().sum().backward();
  y.detach().add_(1);
  seen.push_back(x.grad());
  seen.push_back(y.grad());
  return seen;
}

variable_list ComplexLinear(const torch::Device& device) {
  const variable_list leaves = {Leaf({2, 3, 4}, device, torch::kComplexDouble),
                                Leaf({5, 4}, device, torch::kComplexDouble), Leaf({5}, device, torch::kComplexDouble)};
  const torch::Tensor y = torch::linear(leaves[0], leaves[1], leaves[2]);
  variable_list results = torch::autograd::grad({y.abs().pow(2).sum()}, leaves);
  results.push_back(y);
  return results;
}

variable_list DerivativesOfLinear(const torch::Device& device) {
  const variable_list leaves = {Leaf({3, 4}, device), Leaf({5, 4}, device)};
  const torch::Tensor y = torch::linear(leaves[0], leaves[1]);
  const variable_list first = torch::autograd::grad({y.pow(3).sum()}, leaves, {}, true, /*create_graph=*/true);
  return torch::autograd::grad({first[0].pow(2).sum() + first[1].pow(2).sum()}, leaves);
}

// What accumulates: the second gradient is added in place to the first.
variable_list AccumulatedGradients(const torch::Device& device) {
  const torch::Tensor x = Leaf({5}, device);
  x.exp().sum().backward();
  const torch::Tensor grad = x.grad();
  x.sin().sum().backward();
  return {grad, x.grad()};
}

TEST(Autograd, IsEagers) {
  for (variable_list (*program)(const torch::Device&) :
       {CubesDerivatives, GradientsSeenByHooks, ComplexLinear, DerivativesOfLinear, AccumulatedGradients}) {
    torch::manual_seed(0);
    const variable_list cpu = program(torch::kCPU);
    torch::manual_seed(0);
    const variable_list lazy = program(torch::Device("lazy"));
    ASSERT_EQ(lazy.size(), cpu.size());
    for (size_t i = 0; i < cpu.size(); ++i) EXPECT_TRUE(torch::allclose(lazy[i].cpu(), cpu[i], 1e-12, 1e-12)) << i;
  }
}

// What a view's history is, is found out when somebody asks; exchanging tensors does not.
TEST(Autograd, SetDataLeavesHistoriesAlone) {
  for (const char* device : {"cpu", "lazy"}) {
    const torch::Tensor view = torch::zeros({8}, torch::Device(device)).slice(0, 0, 8, 2);
    view.alias().copy_(Leaf({4}, torch::Device(device)));
    torch::zeros({4}, torch::Device(device)).set_data(view);
    EXPECT_TRUE(view.is_leaf()) << device;
    EXPECT_TRUE(view.requires_grad()) << device;
  }
}

TEST(Autograd, ASavedTensorThatWasWrittenIsFound) {
  const torch::Tensor x = Leaf({5}, torch::Device("lazy"));
  const torch::Tensor y = x.exp(), z = y.sin();
  y.add_(1);
  EXPECT_THROW(z.sum().backward(), c10::Error);
}

// In this thread, from here to the end of its scope.
struct Autocast {
  explicit Autocast(torch::ScalarType type) {
    at::autocast::increment_nesting();
    at::autocast::set_autocast_enabled(at::kPrivateUse1, true);
    at::autocast::set_autocast_dtype(at::kPrivateUse1, type);
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kPrivateUse1, false);
  }
};

TEST(Autocast, TrainsInLowPrecision) {
  for (const torch::ScalarType type : {torch::kBFloat16, torch::kHalf}) {
    torch::manual_seed(0);
    torch::nn::Sequential model(torch::nn::Linear(8, 32), torch::nn::Tanh(), torch::nn::Linear(32, 1));
    model->to(torch::Device("lazy"));
    torch::optim::Adam optimizer(model->parameters(), 0.02);
    const torch::Tensor x = torch::randn({64, 8}).to(torch::Device("lazy")), target = x.sum(1, /*keepdim=*/true).sin();
    double first = 0, last = 0;
    for (int step = 0; step < 30; ++step) {
      optimizer.zero_grad();
      torch::Tensor loss;
      {
        const Autocast low(type);
        const torch::Tensor output = model->forward(x);
        EXPECT_EQ(output.scalar_type(), type);
        loss = torch::mse_loss(output, target);
        EXPECT_EQ(loss.scalar_type(), torch::kFloat);
      }
      loss.backward();
      for (const torch::Tensor& p : model->parameters()) EXPECT_EQ(p.grad().scalar_type(), torch::kFloat);
      optimizer.step();
      (step == 0 ? first : last) = loss.item<double>();
    }
    EXPECT_LT(last, 0.5 * first);
  }
}

}  // namespace
}  // namespace torch_lazy::device
