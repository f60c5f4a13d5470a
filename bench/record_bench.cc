// SPDX-License-Identifier: Apache-2.0
// Nanoseconds to record one call, on a step repeated without gradients: record_bench lazy|null|cpu [workload].
//
// A step is timed from its first call to just before the cut; the sync that runs it is not timed. The null device is
// the floor: dispatcher, tensor and storage, no recording. On cpu the same calls compute, on eight numbers each.
#include <ATen/Functions.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include "bench/device.h"

namespace {

constexpr int kWarmSteps = 10;
constexpr int kSteps = 300;

struct Workload {
  const char* name;
  int num_calls;  // by construction; what the device counts is printed beside it
  std::function<std::vector<at::Tensor>()> step;
};

// 100 pointwise calls, every result used.
Workload Chain(const c10::Device& device) {
  const at::Tensor x = at::ones({8}).to(device), y = at::ones({8}).to(device);
  return {"chain", 100, [=] {
            at::Tensor h = x;
            for (int i = 0; i < 20; ++i) h = at::relu(at::mul(at::tanh(at::sub(at::add(h, y), x)), y));
            return std::vector<at::Tensor>{h};
          }};
}

// Four layers forward, as inference does.
Workload Layers(const c10::Device& device) {
  const at::Tensor x = at::ones({4, 8}).to(device), w = at::ones({8, 8}).to(device), b = at::ones({8}).to(device);
  return {"layers", 80, [=] {
            at::Tensor h = x;
            for (int i = 0; i < 40; ++i) h = at::relu(at::addmm(b, h, w));
            return std::vector<at::Tensor>{h};
          }};
}

// torch::optim::Adam over 300 parameters: eight calls each.
Workload Adam(const c10::Device& device) {
  std::vector<at::Tensor> parameters;
  for (int i = 0; i < 300; ++i) {
    parameters.push_back(at::ones({8}).to(device).requires_grad_());
    parameters.back().mutable_grad() = at::ones({8}).to(device);
  }
  auto optimizer = std::make_shared<torch::optim::Adam>(parameters);
  return {"adam", 2400, [=] {
            optimizer->step();
            return std::vector<at::Tensor>{};
          }};
}

double Nanoseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::nano>(time).count();
}

void Measure(const Workload& workload) {
  std::vector<double> times;
  int64_t num_calls = 0;
  for (int i = 0; i < kWarmSteps + kSteps; ++i) {
    const int64_t before = bench::NumCalls();
    const auto start = std::chrono::steady_clock::now();
    const std::vector<at::Tensor> held = workload.step();
    const auto end = std::chrono::steady_clock::now();
    num_calls = bench::NumCalls() - before;
    bench::Sync();
    if (i >= kWarmSteps) times.push_back(Nanoseconds(end - start) / workload.num_calls);
  }
  std::sort(times.begin(), times.end());
  std::printf("  %-8s %8.0f %8.0f %10d %10ld\n", workload.name, times[times.size() / 2], times[0], workload.num_calls,
              static_cast<long>(num_calls));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "lazy", only = argc > 2 ? argv[2] : "";
  const c10::Device device = bench::Open(name);
  at::NoGradGuard no_grad;
  std::printf("%-10s %8s %8s %10s %10s\n", name.c_str(), "median", "least", "calls", "counted");
  for (const Workload& workload : {Chain(device), Layers(device), Adam(device)}) {
    if (only.empty() || only == workload.name) Measure(workload);
  }
}
