// SPDX-License-Identifier: Apache-2.0
// A small residual network with batch norm, trained with SGD and momentum.
#include "programs.h"

namespace programs {
namespace {

namespace nn = torch::nn;

nn::Conv2d Conv(int64_t in, int64_t out, int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false));
}

struct BlockImpl : nn::Module {
  BlockImpl(int64_t in, int64_t out, int64_t stride)
      : conv1(register_module("conv1", Conv(in, out, stride))),
        norm1(register_module("norm1", nn::BatchNorm2d(out))),
        conv2(register_module("conv2", Conv(out, out, 1))),
        norm2(register_module("norm2", nn::BatchNorm2d(out))) {
    if (in != out) shortcut = register_module("shortcut", Conv(in, out, stride));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor h = torch::relu(norm1(conv1(x)));
    return torch::relu(norm2(conv2(h)) + (shortcut ? shortcut(x) : x));
  }

  nn::Conv2d conv1;
  nn::BatchNorm2d norm1;
  nn::Conv2d conv2;
  nn::BatchNorm2d norm2;
  nn::Conv2d shortcut{nullptr};
};
TORCH_MODULE(Block);

}  // namespace

std::vector<double> Resnet(const Options& options) {
  nn::Sequential net(Conv(3, 16, 1), Block(16, 16, 1), Block(16, 32, 2), nn::AdaptiveAvgPool2d(1), nn::Flatten(),
                     nn::Linear(32, 3));
  Initialize(*net, options);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  Data data(options);
  LossLog log(options);
  for (int step = 0; step < options.steps; ++step) {
    Schedule(optimizer, 0.05, step);
    optimizer.zero_grad();
    const torch::Tensor x = data.Normal({32, 3, 16, 16});
    const torch::Tensor y = x.mean({2, 3}).argmax(1);
    torch::Tensor loss = nn::functional::cross_entropy(net->forward(x), y);
    loss.backward();
    optimizer.step();
    log.Add(loss);
  }
  return log.Values();
}

}  // namespace programs
