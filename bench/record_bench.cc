// SPDX-License-Identifier: Apache-2.0
// Nanoseconds to record one call, without gradients: record_bench lazy|null|cpu [workload].
//
// A step is timed from its first call to just before the cut: one that is repeated, and one of a size that was never
// seen. The wait that runs it is timed by itself: with LAZY_BACKEND=null LAZY_COMPILE=sync that is the cut and the
// binding of the plan to its memory. The null device is the floor: dispatcher, tensor and storage, no recording. On cpu
// the same calls compute, on a few numbers each.
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
constexpr int kSizes = 40;

using Step = std::function<std::vector<at::Tensor>()>;

struct Workload {
  const char* name;
  int num_calls;  // of a repeated step, by construction; what the device counts is printed beside it
  Step (*make)(const c10::Device& device, int64_t size);
};

// 100 pointwise calls, every result used.
Step Chain(const c10::Device& device, int64_t size) {
  const at::Tensor x = at::ones({size}).to(device), y = at::ones({size}).to(device);
  return [=] {
    at::Tensor h = x;
    for (int i = 0; i < 20; ++i) h = at::relu(at::mul(at::tanh(at::sub(at::add(h, y), x)), y));
    return std::vector<at::Tensor>{h};
  };
}

// Four layers forward, as inference does.
Step Layers(const c10::Device& device, int64_t size) {
  const at::Tensor x = at::ones({size, 8}).to(device), w = at::ones({8, 8}).to(device), b = at::ones({8}).to(device);
  return [=] {
    at::Tensor h = x;
    for (int i = 0; i < 40; ++i) h = at::relu(at::addmm(b, h, w));
    return std::vector<at::Tensor>{h};
  };
}

// torch::optim::Adam over 300 parameters: eight calls each, after two that make its state.
Step Adam(const c10::Device& device, int64_t size) {
  std::vector<at::Tensor> parameters;
  for (int i = 0; i < 300; ++i) {
    parameters.push_back(at::ones({size}).to(device).requires_grad_());
    parameters.back().mutable_grad() = at::ones({size}).to(device);
  }
  auto optimizer = std::make_shared<torch::optim::Adam>(parameters);
  return [=] {
    optimizer->step();
    return std::vector<at::Tensor>{};
  };
}

constexpr Workload kWorkloads[] = {{"chain", 100, Chain}, {"layers", 80, Layers}, {"adam", 2400, Adam}};

struct Times {
  double record, wait;  // ns a call
  int64_t num_calls;
};

// One step, then the wait for it.
Times Run(const Step& step, int num_calls) {
  using Clock = std::chrono::steady_clock;
  const auto nanoseconds = [](Clock::duration time) { return std::chrono::duration<double, std::nano>(time).count(); };
  const int64_t before = bench::NumCalls();
  const auto start = Clock::now();
  const std::vector<at::Tensor> held = step();
  const auto recorded = Clock::now();
  bench::Sync();
  const auto end = Clock::now();
  const int64_t counted = bench::NumCalls() - before;
  if (counted > num_calls) num_calls = static_cast<int>(counted);
  return {nanoseconds(recorded - start) / num_calls, nanoseconds(end - recorded) / num_calls, counted};
}

double Median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void Measure(const Workload& workload, const c10::Device& device) {
  std::vector<double> record, wait, first;
  Times last{};
  const Step step = workload.make(device, 8);
  for (int i = 0; i < kWarmSteps + kSteps; ++i) {
    last = Run(step, workload.num_calls);
    if (i < kWarmSteps) continue;
    record.push_back(last.record);
    wait.push_back(last.wait);
  }
  for (int i = 0; i < kSizes; ++i) {
    const Step other = workload.make(device, 16 + i);
    bench::Sync();
    first.push_back(Run(other, workload.num_calls).record);
  }
  std::printf("  %-8s %8.0f %8.0f %8.0f %8.0f %10d %10ld\n", workload.name, Median(record),
              *std::min_element(record.begin(), record.end()), Median(first), Median(wait), workload.num_calls,
              static_cast<long>(last.num_calls));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "lazy", only = argc > 2 ? argv[2] : "";
  const c10::Device device = bench::Open(name);
  at::NoGradGuard no_grad;
  std::printf("%-10s %8s %8s %8s %8s %10s %10s\n", name.c_str(), "median", "least", "first", "wait", "calls",
              "counted");
  for (const Workload& workload : kWorkloads) {
    if (only.empty() || only == workload.name) Measure(workload, device);
  }
}
