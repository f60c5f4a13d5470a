// SPDX-License-Identifier: Apache-2.0
// A GRU written by hand from matmuls and pointwise ops.
#include "programs.h"

namespace programs {
namespace {

namespace nn = torch::nn;

constexpr int64_t kInputs = 24;
constexpr int64_t kHidden = 96;

struct GruNetImpl : nn::Module {
  GruNetImpl()
      : w(register_parameter("w", torch::empty({3 * kHidden, kInputs}))),
        u(register_parameter("u", torch::empty({3 * kHidden, kHidden}))),
        bias(register_parameter("bias", torch::zeros({3 * kHidden}))),
        head(register_module("head", nn::Linear(kHidden, 1))) {}

  torch::Tensor Cell(const torch::Tensor& x, const torch::Tensor& h) {
    const std::vector<torch::Tensor> a = (torch::matmul(x, w.t()) + bias).chunk(3, 1);
    const std::vector<torch::Tensor> b = torch::matmul(h, u.t()).chunk(3, 1);
    const torch::Tensor reset = torch::sigmoid(a[0] + b[0]);
    const torch::Tensor update = torch::sigmoid(a[1] + b[1]);
    const torch::Tensor candidate = torch::tanh(a[2] + reset * b[2]);
    return (1 - update) * candidate + update * h;
  }

  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor h = torch::zeros({x.size(1), kHidden}, x.options());
    for (const torch::Tensor& input : x.unbind(0)) h = Cell(input, h);
    return head(h).squeeze(1);
  }

  torch::Tensor w;
  torch::Tensor u;
  torch::Tensor bias;
  nn::Linear head;
};
TORCH_MODULE(GruNet);

}  // namespace

std::vector<double> Gru(const Options& options) {
  GruNet net;
  Initialize(*net, options);
  torch::optim::Adam optimizer(net->parameters());
  Data data(options);
  LossLog log(options);
  for (int step = 0; step < options.steps; ++step) {
    Schedule(optimizer, 2e-3, step);
    optimizer.zero_grad();
    const torch::Tensor x = data.Normal({8, 32, kInputs});
    torch::Tensor loss = torch::mse_loss(net->forward(x), x.select(2, 0).sum(0));
    loss.backward();
    optimizer.step();
    log.Add(loss);
  }
  return log.Values();
}

}  // namespace programs
