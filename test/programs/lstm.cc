// SPDX-License-Identifier: Apache-2.0
// The LSTM module, whose cells are fused operators.
#include "programs.h"

namespace programs {
namespace {

namespace nn = torch::nn;

struct LstmNetImpl : nn::Module {
  LstmNetImpl()
      : lstm(register_module("lstm", nn::LSTM(nn::LSTMOptions(24, 64).num_layers(2)))),
        head(register_module("head", nn::Linear(64, 1))) {}

  torch::Tensor forward(const torch::Tensor& x) { return head(std::get<0>(lstm->forward(x))[-1]).squeeze(1); }

  nn::LSTM lstm;
  nn::Linear head;
};
TORCH_MODULE(LstmNet);

}  // namespace

std::vector<double> Lstm(const Options& options) {
  LstmNet net;
  Initialize(*net, options);
  torch::optim::Adam optimizer(net->parameters());
  Data data(options);
  LossLog log(options);
  for (int step = 0; step < options.steps; ++step) {
    Schedule(optimizer, 2e-3, step);
    optimizer.zero_grad();
    const torch::Tensor x = data.Normal({8, 32, 24});
    torch::Tensor loss = torch::mse_loss(net->forward(x), x.select(2, 0).sum(0));
    loss.backward();
    optimizer.step();
    log.Add(loss);
  }
  return log.Values();
}

}  // namespace programs
