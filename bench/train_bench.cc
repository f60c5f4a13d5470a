// SPDX-License-Identifier: Apache-2.0
// Runs a C++ workload on a device, as many steps as its input says: train_bench WORKLOAD DEVICE.
//
// Prints "ready"; then, for each number read, runs that many steps and prints the seconds they took, as worker.py
// does; for "counts", what the device has counted so far. The library is opened only for device lazy: eager runs in a
// process without it.
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <memory>

#include "bench/device.h"
#include "bench/train_steps.h"

namespace {

using bench::Step;

// Adam alone over `count` parameters of `size` x `size`; gradients alternate.
Step Adam(const torch::Device& device, int count, int64_t size) {
  std::vector<torch::Tensor> parameters;
  auto gradients = std::make_shared<std::array<std::vector<torch::Tensor>, 2>>();
  for (int i = 0; i < count; ++i) {
    parameters.push_back(torch::randn({size, size}).to(device).requires_grad_());
    for (auto& list : *gradients) list.push_back(torch::randn({size, size}).to(device));
  }
  auto optimizer = std::make_shared<torch::optim::Adam>(parameters);
  return [=](int index) mutable {
    const std::vector<torch::Tensor>& chosen = (*gradients)[index % 2];
    for (size_t i = 0; i < parameters.size(); ++i) parameters[i].mutable_grad() = chosen[i];
    optimizer->step();
    return torch::Tensor();
  };
}

// The same network as workloads/mlp.py.
Step Mlp(const torch::Device& device) {
  namespace nn = torch::nn;
  nn::Sequential net(nn::Linear(784, 512), nn::ReLU(), nn::Linear(512, 512), nn::ReLU(), nn::Linear(512, 10));
  net->to(device);
  std::vector<std::pair<torch::Tensor, torch::Tensor>> batches;
  for (int i = 0; i < 8; ++i) batches.emplace_back(torch::randn({128, 784}), torch::randint(10, {128}, torch::kLong));
  auto optimizer = std::make_shared<torch::optim::Adam>(net->parameters());
  return [=](int index) mutable {
    const auto& [x, y] = batches[index % batches.size()];
    optimizer->zero_grad();
    const torch::Tensor loss = nn::functional::cross_entropy(net->forward(x.to(device)), y.to(device));
    loss.backward();
    optimizer->step();
    return loss.detach();
  };
}

// The same network as workloads/gru.py.
struct GruNet : torch::nn::Module {
  static constexpr int64_t kTimes = 16, kBatch = 32, kWidth = 64;
  torch::nn::Linear inputs = register_module("inputs", torch::nn::Linear(kWidth, 3 * kWidth));
  torch::nn::Linear hidden = register_module("hidden", torch::nn::Linear(kWidth, 3 * kWidth));
  torch::nn::Linear head = register_module("head", torch::nn::Linear(kWidth, 1));

  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor h = torch::zeros({kBatch, kWidth}, x.device());
    for (const torch::Tensor& input : x.unbind(0)) {
      const std::vector<torch::Tensor> a = inputs(input).chunk(3, 1), b = hidden(h).chunk(3, 1);
      const torch::Tensor reset = torch::sigmoid(a[0] + b[0]), update = torch::sigmoid(a[1] + b[1]);
      h = (1 - update) * torch::tanh(a[2] + reset * b[2]) + update * h;
    }
    return head(h).squeeze(1);
  }
};

Step Gru(const torch::Device& device) {
  auto net = std::make_shared<GruNet>();
  net->to(device);
  std::vector<std::pair<torch::Tensor, torch::Tensor>> batches;
  for (int i = 0; i < 8; ++i) {
    batches.emplace_back(torch::randn({GruNet::kTimes, GruNet::kBatch, GruNet::kWidth}),
                         torch::randn({GruNet::kBatch}));
  }
  auto optimizer = std::make_shared<torch::optim::Adam>(net->parameters());
  return [=](int index) mutable {
    const auto& [x, y] = batches[index % batches.size()];
    optimizer->zero_grad();
    const torch::Tensor loss = torch::nn::functional::mse_loss(net->forward(x.to(device)), y.to(device));
    loss.backward();
    optimizer->step();
    return loss.detach();
  };
}

double Run(const Step& step, int begin, int count) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<torch::Tensor> held;
  for (int i = 0; i < count; ++i) held.push_back(step(begin + i));
  bench::Sync();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<Step(const torch::Device&)>> workloads = {
      {"adam64", [](const torch::Device& device) { return Adam(device, 64, 256); }},
      {"adam300", [](const torch::Device& device) { return Adam(device, 300, 64); }},
      {"mlp", Mlp},
      {"gru", Gru},
      {"gpt", [](const torch::Device& device) { return bench::Gpt(device, bench::Lengths::kOne); }},
      {"gpt_lengths", [](const torch::Device& device) { return bench::Gpt(device, bench::Lengths::kInTurn); }},
      {"gpt_shuffled", [](const torch::Device& device) { return bench::Gpt(device, bench::Lengths::kShuffled); }},
      {"resnet", bench::Resnet},
      {"serve1", [](const torch::Device& device) { return bench::Serve(device, 1); }},
      {"serve8", [](const torch::Device& device) { return bench::Serve(device, 8); }},
      {"serve_conv1", [](const torch::Device& device) { return bench::ServeConvolutions(device, 1); }},
      {"serve_conv8", [](const torch::Device& device) { return bench::ServeConvolutions(device, 8); }},
  };
  if (argc != 3 || !workloads.contains(argv[1])) {
    std::fprintf(stderr,
                 "usage: train_bench "
                 "adam64|adam300|mlp|gru|gpt|gpt_lengths|gpt_shuffled|resnet|serve1|serve8|serve_conv1|serve_conv8 "
                 "cpu|cuda|lazy\n");
    return 2;
  }
  const c10::Device device = bench::Open(argv[2]);  // first, since PyTorch looks for CUDA once
  torch::manual_seed(0);
  const Step step = workloads.at(argv[1])(device);
  bench::Sync();
  std::cout << "ready" << std::endl;
  int index = 0;
  for (std::string word; std::cin >> word;) {
    if (word == "counts") {
      std::cout << "{\"graph_replays\": " << bench::Metric("graph_replays")
                << ", \"lane_replays\": " << bench::Metric("lane_replays")
                << ", \"kernel_launches\": " << bench::Metric("kernel_launches")
                << ", \"traces_run\": " << bench::Metric("traces_run")
                << ", \"trace_misses\": " << bench::Metric("trace_misses") << "}" << std::endl;
      continue;
    }
    const int count = std::stoi(word);
    std::cout << Run(step, index, count) << std::endl;
    index += count;
  }
}
