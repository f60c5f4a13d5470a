// SPDX-License-Identifier: Apache-2.0
// Computes on the device, and uses each function of the public header.
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>

#include <torch_lazy/torch_lazy.h>
#include <iostream>

int main() {
  torch_lazy::SetOption("compile", "sync");
  torch_lazy::ResetMetrics();
  const at::Tensor x = at::ones({2, 3}, at::TensorOptions(at::Device("lazy")));
  const at::Tensor y = x.add(x).mul(x);
  torch_lazy::Sync();
  const bool right = x.device().is_privateuseone() && y.sum().item<float>() == 12;
  const bool counted = torch_lazy::Metrics().find("\"calls_total\"") != std::string::npos;
  std::cout << torch_lazy::Explain() << (right && counted ? "right" : "wrong") << std::endl;
  return right && counted ? 0 : 1;
}
