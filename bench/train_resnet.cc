// SPDX-License-Identifier: Apache-2.0
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>
#include <torch/optim/sgd.h>

#include "bench/train_steps.h"

namespace bench {
namespace {

namespace nn = torch::nn;

constexpr int64_t kImages = 32, kSide = 32, kClasses = 10;

nn::Conv2d Conv(int64_t inputs, int64_t outputs, int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(inputs, outputs, 3).stride(stride).padding(1).bias(false));
}

struct BlockImpl : nn::Module {
  nn::Conv2d conv1, conv2, shortcut{nullptr};
  nn::BatchNorm2d norm1, norm2;

  BlockImpl(int64_t inputs, int64_t outputs, int64_t stride)
      : conv1(register_module("conv1", Conv(inputs, outputs, stride))),
        conv2(register_module("conv2", Conv(outputs, outputs, 1))),
        norm1(register_module("norm1", nn::BatchNorm2d(outputs))),
        norm2(register_module("norm2", nn::BatchNorm2d(outputs))) {
    if (inputs != outputs) shortcut = register_module("shortcut", Conv(inputs, outputs, stride));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor h = torch::relu(norm1(conv1(x)));
    return torch::relu(norm2(conv2(h)) + (shortcut ? shortcut(x) : x));
  }
};
TORCH_MODULE(Block);

}  // namespace

Step Resnet(const c10::Device& device) {
  nn::Sequential net(Conv(3, 32, 1), nn::BatchNorm2d(32), nn::ReLU(), Block(32, 32, 1), Block(32, 64, 2),
                     Block(64, 128, 2), nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(128, kClasses));
  net->to(device);
  std::vector<std::pair<torch::Tensor, torch::Tensor>> batches;
  for (int i = 0; i < 8; ++i)
    batches.emplace_back(torch::randn({kImages, 3, kSide, kSide}), torch::randint(kClasses, {kImages}, torch::kLong));
  auto optimizer = std::make_shared<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  return [=](int index) mutable {
    const auto& [x, y] = batches[index % batches.size()];
    optimizer->zero_grad();
    torch::Tensor loss = nn::functional::cross_entropy(net->forward(x.to(device)), y.to(device));
    loss.backward();
    optimizer->step();
    return loss.detach();
  };
}

}  // namespace bench
