// SPDX-License-Identifier: Apache-2.0
// torch::optim with numbers that change at every step: no trace is new after the third, and no kernel.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/torch.h>
#include <torch_lazy/torch_lazy.h>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

using Optimizer = std::unique_ptr<torch::optim::Optimizer>;
using Make = std::function<Optimizer(std::vector<torch::Tensor>)>;

template <typename T>
Make Of(typename T::Options options) {
  return
      [options](std::vector<torch::Tensor> parameters) { return std::make_unique<T>(std::move(parameters), options); };
}

// What torch::optim's classes call their options.
struct Sgd : torch::optim::SGD {
  using Options = torch::optim::SGDOptions;
  using torch::optim::SGD::SGD;
};
struct Adam : torch::optim::Adam {
  using Options = torch::optim::AdamOptions;
  using torch::optim::Adam::Adam;
};
struct AdamW : torch::optim::AdamW {
  using Options = torch::optim::AdamWOptions;
  using torch::optim::AdamW::AdamW;
};
struct RmsProp : torch::optim::RMSprop {
  using Options = torch::optim::RMSpropOptions;
  using torch::optim::RMSprop::RMSprop;
};
struct Adagrad : torch::optim::Adagrad {
  using Options = torch::optim::AdagradOptions;
  using torch::optim::Adagrad::Adagrad;
};

class Optimizers : public testing::TestWithParam<std::pair<std::string, Make>> {};

TEST_P(Optimizers, NoNumberIsNewsAfterTheThirdStep) {
  SetOption("compile", "sync");
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(4, 6), torch::nn::Tanh(), torch::nn::Linear(6, 2));
  net->to(torch::Device("lazy"));
  const Optimizer optimizer = GetParam().second(net->parameters());
  const std::vector<double> rates = {1e-3, 2e-3, 1.5e-3, 1e-3, 0.0, 1.0, 1e-8, 2e-8, 0.5, 2.0, 1e-4, 0.1};
  std::vector<std::pair<int64_t, int64_t>> counts;
  for (const double rate : rates) {
    for (torch::optim::OptimizerParamGroup& group : optimizer->param_groups()) group.options().set_lr(rate);
    optimizer->zero_grad();
    const torch::Tensor loss = net->forward(torch::full({3, 4}, 0.1, torch::Device("lazy"))).square().mean();
    loss.backward();
    optimizer->step();
    loss.item<float>();
    counts.emplace_back(Metric("trace_misses"), Metric("kernels_compiled") + Metric("kernels_from_disk"));
  }
  for (size_t step = 3; step < counts.size(); ++step) EXPECT_EQ(counts[step], counts[2]) << "at step " << step + 1;
}

// Launches of the last of some steps over 300 parameters.
int64_t LaunchesOfAStep(const Make& make, bool clip) {
  std::vector<torch::Tensor> parameters;
  for (int k = 0; k < 300; ++k) parameters.push_back(torch::randn({8, 8}, torch::Device("lazy")).requires_grad_());
  for (torch::Tensor& parameter : parameters) parameter.mutable_grad() = torch::randn({8, 8}, torch::Device("lazy"));
  const Optimizer optimizer = make(parameters);
  int64_t before = 0;
  for (int step = 0; step < 4; ++step) {
    Sync();
    before = Metric("kernel_launches");
    if (clip) torch::nn::utils::clip_grad_norm_(parameters, 1.0);
    optimizer->step();
  }
  Sync();
  return Metric("kernel_launches") - before;
}

TEST_P(Optimizers, UpdatesAllParametersInOneLaunch) {
  SetOption("compile", "sync");
  EXPECT_EQ(LaunchesOfAStep(GetParam().second, /*clip=*/false), 1);
}

// The norms, their stack's norm, and the updates with what they are clipped by.
TEST_P(Optimizers, ClipsInAFewLaunches) {
  SetOption("compile", "sync");
  EXPECT_EQ(LaunchesOfAStep(GetParam().second, /*clip=*/true), 4);
}

INSTANTIATE_TEST_SUITE_P(
    All, Optimizers,
    testing::Values(
        std::pair{"Sgd", Of<Sgd>(0.1)}, std::pair{"Momentum", Of<Sgd>(torch::optim::SGDOptions(0.1).momentum(0.9))},
        std::pair{"Nesterov", Of<Sgd>(torch::optim::SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.1))},
        std::pair{"Adam", Of<Adam>(0.1)}, std::pair{"AmsGrad", Of<Adam>(torch::optim::AdamOptions(0.1).amsgrad(true))},
        std::pair{"AdamW", Of<AdamW>(0.1)}, std::pair{"RmsProp", Of<RmsProp>(0.1)},
        std::pair{"Centered", Of<RmsProp>(torch::optim::RMSpropOptions(0.1).centered(true).momentum(0.9))},
        std::pair{"Adagrad", Of<Adagrad>(torch::optim::AdagradOptions(0.1).lr_decay(0.1))}),
    [](const testing::TestParamInfo<std::pair<std::string, Make>>& info) { return info.param.first; });

}  // namespace
}  // namespace torch_lazy::device
