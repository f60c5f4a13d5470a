// SPDX-License-Identifier: Apache-2.0
// What the training programs share: data, initial values, losses, the schedule.
#include "programs.h"

#include <ATen/CPUGeneratorImpl.h>

#include <cmath>

namespace programs {

Data::Data(const Options& options)
    : device_(options.device), generator_(at::detail::createCPUGenerator(/*seed_val=*/2)) {}

torch::Tensor Data::Normal(at::IntArrayRef sizes) { return torch::randn(sizes, generator_).to(device_); }

torch::Tensor Data::Integers(int64_t high, at::IntArrayRef sizes) {
  return torch::randint(high, sizes, generator_, torch::kLong).to(device_);
}

void LossLog::Add(const torch::Tensor& loss) {
  const int step = static_cast<int>(losses_.size());
  losses_.push_back(loss.detach());
  if (options_.read_every != 0 && step % options_.read_every == 0) losses_.back().item<double>();
  options_.after_step(step + 1);
}

std::vector<double> LossLog::Values() const {
  std::vector<double> values;
  for (const torch::Tensor& loss : losses_) values.push_back(loss.item<double>());
  return values;
}

void Initialize(torch::nn::Module& module, const Options& options) {
  const torch::NoGradGuard no_grad;
  const at::Generator generator = at::detail::createCPUGenerator(/*seed_val=*/1);
  const at::Generator directions = at::detail::createCPUGenerator(/*seed_val=*/4);
  for (auto& parameter : module.named_parameters()) {
    torch::Tensor& value = parameter.value();
    if (value.dim() > 1) {
      const double fan_in = static_cast<double>(value.numel() / value.size(0));
      value.normal_(0.0, 1.0 / std::sqrt(fan_in), generator);
      if (options.is_off_by_a_rounding)
        value.copy_(torch::nextafter(value, torch::randn(value.sizes(), directions) * INFINITY));
    } else if (parameter.key().find("bias") != std::string::npos) {
      value.zero_();
    }
  }
  module.to(options.device);
  torch::manual_seed(3);
}

void Schedule(torch::optim::Optimizer& optimizer, double base, int step) {
  for (auto& group : optimizer.param_groups()) {
    group.options().set_lr(base * (0.6 + 0.4 * std::cos(0.1 * step)));
  }
}

}  // namespace programs
