// SPDX-License-Identifier: Apache-2.0
// Modules, Parameters and optimizers of LibTorch, moved to the device.
#include <gtest/gtest.h>
#include <ATen/autocast_mode.h>
#include <torch/torch.h>

namespace torch_lazy::device {
namespace {

torch::nn::Sequential Mlp() {
  torch::manual_seed(0);
  return torch::nn::Sequential(torch::nn::Linear(8, 16), torch::nn::ReLU(), torch::nn::Linear(16, 4));
}

std::vector<double> Train(const torch::Device& device, bool optimizer_first) {
  torch::nn::Sequential model = Mlp();
  std::optional<torch::optim::Adam> optimizer;
  if (optimizer_first) optimizer.emplace(model->parameters(), 0.01);
  model->to(device);
  if (!optimizer_first) optimizer.emplace(model->parameters(), 0.01);
  std::vector<double> losses;
  for (int step = 0; step < 8; ++step) {
    const torch::Tensor x = torch::randn({32, 8}).to(device), target = torch::randint(4, {32}).to(device);
    optimizer->zero_grad();
    const torch::Tensor loss = torch::nn::functional::cross_entropy(model->forward(x), target);
    loss.backward();
    optimizer->step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

TEST(Module, MovingKeepsParameters) {
  torch::nn::Linear layer(3, 2);
  const torch::Tensor weight = layer->weight;
  layer->to(torch::Device("lazy"));
  EXPECT_TRUE(weight.is_same(layer->weight));
  EXPECT_TRUE(weight.is_privateuseone());
  EXPECT_TRUE(weight.requires_grad());
  layer->to(torch::kCPU);
  EXPECT_TRUE(weight.is_same(layer->weight));
  EXPECT_TRUE(weight.is_cpu());
}

TEST(Module, SetDataTakesTheOtherDevice) {
  torch::Tensor x = torch::ones({2, 2}, torch::requires_grad());
  x.set_data(torch::full({3}, 2.0, torch::Device("lazy")));
  EXPECT_TRUE(x.is_privateuseone());
  EXPECT_EQ(x.sum().item<double>(), 6);
}

TEST(Module, TrainingEqualsEager) {
  const std::vector<double> eager = Train(torch::kCPU, false);
  EXPECT_LT(eager.back(), eager.front());
  for (const bool optimizer_first : {false, true}) {
    const std::vector<double> lazy = Train(torch::Device("lazy"), optimizer_first);
    for (size_t step = 0; step < eager.size(); ++step) EXPECT_NEAR(lazy[step], eager[step], 1e-5) << "step " << step;
  }
}

TEST(Module, SavesAndLoads) {
  torch::nn::Sequential model = Mlp();
  model->to(torch::Device("lazy"));
  std::stringstream file;
  torch::save(model, file);
  torch::nn::Sequential loaded = Mlp();
  for (torch::Tensor& parameter : loaded->parameters()) torch::NoGradGuard(), parameter.detach().zero_();
  torch::load(loaded, file);
  for (size_t i = 0; i < model->parameters().size(); ++i) {
    EXPECT_TRUE(torch::equal(loaded->parameters()[i].cpu(), model->parameters()[i].cpu()));
  }
}

TEST(Module, AutocastLowersProducts) {
  const torch::Tensor x = torch::ones({2, 2}, torch::Device("lazy"));
  at::autocast::set_autocast_enabled(at::kPrivateUse1, true);
  at::autocast::set_autocast_dtype(at::kPrivateUse1, torch::kBFloat16);
  const torch::Tensor product = x.mm(x), sum = product.softmax(0);
  at::autocast::set_autocast_enabled(at::kPrivateUse1, false);
  at::autocast::clear_cache();
  EXPECT_EQ(product.scalar_type(), torch::kBFloat16);
  EXPECT_EQ(sum.scalar_type(), torch::kFloat);
  EXPECT_EQ(product.sum().item<double>(), 8);
}

}  // namespace
}  // namespace torch_lazy::device
