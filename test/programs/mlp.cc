// SPDX-License-Identifier: Apache-2.0
// A multilayer perceptron trained with Adam.
#include "programs.h"

namespace programs {

std::vector<double> Mlp(const Options& options) {
  namespace nn = torch::nn;
  nn::Sequential net(nn::Linear(64, 320), nn::ReLU(), nn::Linear(320, 320), nn::Tanh(), nn::Linear(320, 10));
  Initialize(*net, options);
  torch::optim::Adam optimizer(net->parameters());
  Data data(options);
  LossLog log(options);
  for (int step = 0; step < options.steps; ++step) {
    Schedule(optimizer, 1e-3, step);
    optimizer.zero_grad();
    const torch::Tensor x = data.Normal({160, 64});
    const torch::Tensor y = x.slice(1, 0, 10).argmax(1);
    torch::Tensor loss = nn::functional::cross_entropy(net->forward(x), y);
    loss.backward();
    optimizer.step();
    log.Add(loss);
  }
  return log.Values();
}

}  // namespace programs
