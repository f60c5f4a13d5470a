// SPDX-License-Identifier: Apache-2.0
// Loads a TorchScript module onto the device: script_module MODULE
#include <torch/script.h>

#include <iostream>

int main(int argc, char** argv) try {
  TORCH_CHECK(argc == 2, "script_module MODULE");
  const torch::NoGradGuard no_grad;
  torch::jit::Module on_cpu = torch::jit::load(argv[1], torch::kCPU);
  torch::jit::Module on_lazy = torch::jit::load(argv[1], torch::Device("lazy"));
  const torch::Tensor x = torch::linspace(-1, 1, 64).view({8, 8});
  const torch::Tensor expected = on_cpu.forward({x}).toTensor();
  for (int i = 0; i < 3; ++i) {
    const torch::Tensor result = on_lazy.forward({x.to("lazy")}).toTensor();
    TORCH_CHECK(result.device() == torch::Device("lazy:0") && result.cpu().allclose(expected), "not the CPU's result");
  }
  std::cout << "the module gives on lazy what it gives on cpu" << std::endl;
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << std::endl;
  return 1;
}
