// SPDX-License-Identifier: Apache-2.0
// Runs an exported program on the device, without Python: exported_program PROGRAM WEIGHTS
#include <ATen/ATen.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/nativert/ModelRunnerHandle.h>

#include <fstream>
#include <iostream>
#include <iterator>

namespace {

// What torch.save wrote: tensors by name.
c10::Dict<std::string, at::Tensor> LoadWeights(const std::string& path, const at::Device& device) {
  std::ifstream file(path, std::ios::binary);
  TORCH_CHECK(file, "cannot read ", path);
  const c10::IValue saved = torch::jit::pickle_load({std::istreambuf_iterator<char>(file), {}});
  c10::Dict<std::string, at::Tensor> weights;
  for (const auto& entry : saved.toGenericDict()) {
    weights.insert(entry.key().toStringRef(), entry.value().toTensor().to(device));
  }
  return weights;
}

}  // namespace

int main(int argc, char** argv) try {
  TORCH_CHECK(argc == 3, "exported_program PROGRAM WEIGHTS");
  const at::Device device("lazy");
  torch::nativert::ModelRunnerHandle program(argv[1], "model");
  const auto weights = LoadWeights(argv[2], device);
  for (const int64_t rows : {8, 8, 5}) {  // the first size of the program is free
    const at::Tensor x = at::linspace(-1, 1, rows * 8).view({rows, 8}).to(device);
    const at::Tensor result = program.run({weights, x}, {}).toTensor();
    TORCH_CHECK(result.device() == at::Device("lazy:0"), "the result is on ", result.device());
    std::cout << "sum of " << rows << " rows:";
    const at::Tensor sums = result.sum(0).cpu();
    for (int64_t i = 0; i < sums.numel(); ++i) std::cout << ' ' << sums[i].item<float>();
    std::cout << std::endl;
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << std::endl;
  return 1;
}
