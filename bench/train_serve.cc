// SPDX-License-Identifier: Apache-2.0
#include <ATen/Functions.h>
#include <c10/core/InferenceMode.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <barrier>
#include <thread>
#include <utility>
#include <vector>

#include "bench/train_steps.h"

namespace bench {
namespace {

namespace nn = torch::nn;

constexpr int kRequests = 512;  // a step: threads that wait for each other after eight would mostly wait

struct Model {
  nn::Sequential net;
  at::Tensor request;
};

Model Mlp() {
  constexpr int64_t kBatch = 8, kWidth = 512;
  constexpr int kLayers = 6;
  nn::Sequential net;
  for (int k = 0; k < kLayers; ++k) {
    net->push_back(nn::Linear(kWidth, kWidth));
    net->push_back(nn::LayerNorm(nn::LayerNormOptions({kWidth})));
    net->push_back(nn::GELU());
  }
  return {net, at::randn({kBatch, kWidth})};
}

struct BlockImpl : nn::Module {
  static constexpr int64_t kChannels = 64;
  nn::Conv2d conv1 = register_module("conv1", Conv()), conv2 = register_module("conv2", Conv());
  nn::BatchNorm2d norm1 = register_module("norm1", nn::BatchNorm2d(kChannels));
  nn::BatchNorm2d norm2 = register_module("norm2", nn::BatchNorm2d(kChannels));

  static nn::Conv2d Conv() { return nn::Conv2d(nn::Conv2dOptions(kChannels, kChannels, 3).padding(1).bias(false)); }
  at::Tensor forward(const at::Tensor& x) { return at::relu(x + norm2(conv2(at::relu(norm1(conv1(x)))))); }
};
TORCH_MODULE(Block);

// The first blocks of a ResNet, for one image.
Model Convolutions() {
  constexpr int64_t kSide = 56;
  nn::Sequential net;
  for (int k = 0; k < 10; ++k) net->push_back(Block());
  return {net, at::randn({1, BlockImpl::kChannels, kSide, kSide})};
}

// Threads that answer requests, a step's share each. They live as long as the process.
class Server {
 public:
  Server(const c10::Device& device, int threads, Model model)
      : device_(device), model_(std::move(model)), begin_(threads + 1), end_(threads + 1) {
    model_.net->to(device);
    model_.net->eval();
    for (int k = 0; k < threads; ++k) std::thread([this, share = kRequests / threads] { Serve(share); }).detach();
  }

  void Step() {
    begin_.arrive_and_wait();
    end_.arrive_and_wait();
  }

 private:
  void Serve(int share) {
    const c10::InferenceMode inference;
    for (;;) {
      begin_.arrive_and_wait();
      for (int k = 0; k < share; ++k) model_.net->forward(model_.request.to(device_)).cpu();
      end_.arrive_and_wait();
    }
  }

  const c10::Device device_;
  Model model_;
  std::barrier<> begin_, end_;
};

Step ServeBy(Model model, const c10::Device& device, int threads) {
  return [server = new Server(device, threads, std::move(model))](int) {
    server->Step();
    return at::Tensor();
  };
}

}  // namespace

Step Serve(const c10::Device& device, int threads) { return ServeBy(Mlp(), device, threads); }

Step ServeConvolutions(const c10::Device& device, int threads) { return ServeBy(Convolutions(), device, threads); }

}  // namespace bench
