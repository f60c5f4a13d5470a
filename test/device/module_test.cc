// SPDX-License-Identifier: Apache-2.0
// Modules, Parameters and optimizers of LibTorch, moved to the device.
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <torch_lazy/torch_lazy.h>

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

std::string Saved(const torch::Tensor& tensor) {
  std::stringstream file;
  torch::save(tensor, file);
  return file.str();
}

torch::Tensor Loaded(const std::string& file, std::optional<torch::Device> device = std::nullopt) {
  std::istringstream stream(file);
  torch::Tensor tensor;
  torch::load(tensor, stream, device);
  return tensor;
}

TEST(Saving, TensorsGoWhereTheReaderWants) {
  const torch::Device lazy("lazy");
  const torch::Tensor x = torch::arange(6.0).view({2, 3}).t();
  const torch::Tensor pending = x.to(lazy).add(1);
  EXPECT_TRUE(Loaded(Saved(pending)).is_privateuseone());
  EXPECT_TRUE(Loaded(Saved(pending), torch::kCPU).is_cpu());
  EXPECT_TRUE(Loaded(Saved(x), lazy).is_privateuseone());
  for (const torch::Tensor& loaded :
       {Loaded(Saved(pending)), Loaded(Saved(pending), torch::kCPU), Loaded(Saved(x + 1), lazy)}) {
    EXPECT_TRUE(torch::equal(loaded.cpu(), x + 1));
    EXPECT_EQ(loaded.strides(), x.strides());
  }
}

TEST(Saving, PicklesKeepTheDevice) {
  const torch::Tensor x = torch::ones({2}, torch::Device("lazy")) + 1;
  const c10::IValue loaded = torch::pickle_load(torch::pickle_save(x));
  EXPECT_TRUE(loaded.toTensor().is_privateuseone());
  EXPECT_EQ(loaded.toTensor().sum().item<double>(), 4);
}

// A model and its optimizer after `steps` steps, the last ones after having been written and read again.
std::vector<torch::Tensor> TrainedAndSaved(int steps, int saved_after) {
  torch::nn::Sequential model = Mlp();
  model->to(torch::Device("lazy"));
  auto optimizer = std::make_unique<torch::optim::Adam>(model->parameters(), 0.01);
  for (int step = 0; step < steps; ++step) {
    if (step == saved_after) {
      std::stringstream model_file, optimizer_file;
      torch::save(model, model_file);
      torch::save(*optimizer, optimizer_file);
      model = Mlp();
      torch::load(model, model_file);
      model->to(torch::Device("lazy"));
      optimizer = std::make_unique<torch::optim::Adam>(model->parameters(), 0.01);
      torch::load(*optimizer, optimizer_file);
    }
    torch::manual_seed(step);
    optimizer->zero_grad();
    model->forward(torch::randn({32, 8}).to(torch::Device("lazy"))).square().mean().backward();
    optimizer->step();
  }
  return model->parameters();
}

TEST(Saving, TrainingGoesOnBitEqual) {
  SetOption("compile", "off");  // sums of kernels and of ATen differ in their last digits
  const std::vector<torch::Tensor> whole = TrainedAndSaved(4, -1), resumed = TrainedAndSaved(4, 2);
  SetOption("compile", "async");
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(torch::equal(whole[i].cpu(), resumed[i].cpu()));
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
