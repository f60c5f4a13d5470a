// SPDX-License-Identifier: Apache-2.0
// A model that takes one of two ways, as its data say.
#include "programs.h"

namespace programs {

std::vector<double> Branch(const Options& options) {
  namespace nn = torch::nn;
  nn::Sequential positive(nn::Linear(64, 320), nn::ReLU());
  nn::Sequential negative(nn::Linear(64, 320), nn::Tanh());
  nn::Linear head(320, 1);
  nn::ModuleList net(positive, negative, head);
  Initialize(*net, options);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.02));
  Data data(options);
  LossLog log(options);
  for (int step = 0; step < options.steps; ++step) {
    Schedule(optimizer, 0.02, step);
    optimizer.zero_grad();
    const torch::Tensor x = data.Normal({160, 64}) + (step % 2 == 0 ? 0.5 : -0.5);
    const bool is_positive = (x.mean() > 0).item<bool>();
    const torch::Tensor h = is_positive ? positive->forward(x) : negative->forward(x);
    torch::Tensor loss = torch::mse_loss(head(h), x.sum(1, /*keepdim=*/true) / 8);
    loss.backward();
    optimizer.step();
    log.Add(loss);
  }
  return log.Values();
}

}  // namespace programs
