// SPDX-License-Identifier: Apache-2.0
// Dropout, whose masks come from the global generator.
#include "programs.h"

namespace programs {

std::vector<double> Dropout(const Options& options) {
  namespace nn = torch::nn;
  nn::Sequential net(nn::Linear(64, 320), nn::ReLU(), nn::Dropout(0.3), nn::Linear(320, 320), nn::SiLU(),
                     nn::Dropout(0.5), nn::Linear(320, 1));
  Initialize(*net, options);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.02));
  Data data(options);
  LossLog log(options);
  for (int step = 0; step < options.steps; ++step) {
    Schedule(optimizer, 0.02, step);
    optimizer.zero_grad();
    const torch::Tensor x = data.Normal({160, 64});
    torch::Tensor loss = torch::mse_loss(net->forward(x), x.mean(1, /*keepdim=*/true));
    loss.backward();
    optimizer.step();
    log.Add(loss);
  }
  return log.Values();
}

}  // namespace programs
