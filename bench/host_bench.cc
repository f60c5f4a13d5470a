// SPDX-License-Identifier: Apache-2.0
// Seconds that a C++ program's step takes the host, the median of many that nobody waits for: host_bench PROGRAM
// null|lazy.
//
// The programs are those of test/programs, and Adam over 300 tensors. To be run with LAZY_BACKEND=null
// LAZY_COMPILE=sync, which computes nothing; the null device is the floor.
#include <c10/core/AutogradState.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>

#include "bench/device.h"
#include "test/programs/programs.h"

namespace {

constexpr int kSteps = 120;
constexpr int kWarm = 40;

std::vector<double> Adam300(const programs::Options& options) {
  std::vector<torch::Tensor> parameters;
  for (int i = 0; i < 300; ++i) {
    parameters.push_back(torch::ones({8, 8}).to(options.device).requires_grad_());
    parameters.back().mutable_grad() = torch::ones({8, 8}).to(options.device);
  }
  torch::optim::Adam optimizer(parameters);
  for (int step = 0; step < options.steps; ++step) {
    optimizer.step();
    options.after_step(step + 1);
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::vector<double> (*)(const programs::Options&)> known = {
      {"gpt", programs::Gpt}, {"resnet", programs::Resnet}, {"mlp", programs::Mlp},
      {"gru", programs::Gru}, {"adam300", Adam300},
  };
  if (argc != 3 || !known.contains(argv[1])) {
    std::fprintf(stderr, "usage: host_bench gpt|resnet|mlp|gru|adam300 null|lazy\n");
    return 2;
  }
  torch::set_num_threads(1);
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  programs::Options options;
  options.device = bench::Open(argv[2]);
  options.steps = kSteps;
  options.read_every = 0;
  std::vector<double> times;
  auto last = std::chrono::steady_clock::now();
  options.after_step = [&](int step) {
    const auto now = std::chrono::steady_clock::now();
    if (step > kWarm) times.push_back(std::chrono::duration<double>(now - last).count());
    last = now;
  };
  known.at(argv[1])(options);
  std::sort(times.begin(), times.end());
  std::printf("%.9f\n", times[times.size() / 2]);
}
