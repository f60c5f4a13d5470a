// SPDX-License-Identifier: Apache-2.0
#include <ATen/Functions.h>
#include <c10/core/InferenceMode.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <barrier>
#include <thread>
#include <vector>

#include "bench/train_steps.h"

namespace bench {
namespace {

namespace nn = torch::nn;

constexpr int64_t kBatch = 8, kWidth = 512;
constexpr int kLayers = 6, kRequests = 64;  // a step

nn::Sequential Net() {
  nn::Sequential net;
  for (int k = 0; k < kLayers; ++k) {
    net->push_back(nn::Linear(kWidth, kWidth));
    net->push_back(nn::LayerNorm(nn::LayerNormOptions({kWidth})));
    net->push_back(nn::GELU());
  }
  return net;
}

// Threads that answer requests, a step's share each. They live as long as the process.
class Server {
 public:
  Server(const c10::Device& device, int threads) : device_(device), begin_(threads + 1), end_(threads + 1) {
    net_->to(device);
    net_->eval();
    for (int k = 0; k < threads; ++k) std::thread([this, share = kRequests / threads] { Serve(share); }).detach();
  }

  void Step() {
    begin_.arrive_and_wait();
    end_.arrive_and_wait();
  }

 private:
  void Serve(int share) {
    const c10::InferenceMode inference;
    const at::Tensor request = at::randn({kBatch, kWidth});
    for (;;) {
      begin_.arrive_and_wait();
      for (int k = 0; k < share; ++k) net_->forward(request.to(device_)).cpu();
      end_.arrive_and_wait();
    }
  }

  const c10::Device device_;
  nn::Sequential net_ = Net();
  std::barrier<> begin_, end_;
};

}  // namespace

Step Serve(const c10::Device& device, int threads) {
  return [server = new Server(device, threads)](int) {
    server->Step();
    return at::Tensor();
  };
}

}  // namespace bench
