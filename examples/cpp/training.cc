// SPDX-License-Identifier: Apache-2.0
// Trains a small network on the CPU and on the device, and asks the device what it did.
#include <torch/torch.h>

#include <torch_lazy/torch_lazy.h>
#include <cmath>
#include <iostream>

namespace {

double Train(const torch::Device& device) {
  torch::manual_seed(0);
  torch::nn::Sequential model(torch::nn::Linear(8, 32), torch::nn::GELU(), torch::nn::Linear(32, 1));
  model->to(device);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(1e-2));
  const torch::Tensor x = torch::randn({256, 8}).to(device);
  const torch::Tensor y = x.sum(/*dim=*/1, /*keepdim=*/true);
  torch::Tensor loss;
  for (int step = 0; step < 100; ++step) {
    optimizer.zero_grad();
    loss = torch::mse_loss(model->forward(x), y);
    loss.backward();
    optimizer.step();
  }
  return loss.item<double>();
}

}  // namespace

int main() {
  torch_lazy::SetOption("compile", "sync");  // each trace waits for its kernels, instead of going on without
  torch_lazy::ResetMetrics();
  const double on_cpu = Train(torch::kCPU), on_lazy = Train(torch::Device("lazy"));
  torch_lazy::Sync();
  std::cout << torch_lazy::Explain() << "loss on cpu " << on_cpu << ", on lazy " << on_lazy << std::endl;
  const bool counted = torch_lazy::Metrics().find("\"calls_total\"") != std::string::npos;
  return counted && on_lazy < 0.1 && std::abs(on_lazy - on_cpu) < 0.01 * on_cpu ? 0 : 1;
}
