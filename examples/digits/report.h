// SPDX-License-Identifier: Apache-2.0
// What the digits program shows: progress bar, times, table.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>

// The counters of the lazy device, by the names of its metrics() in JSON. They are read through
// PyTorch's dispatcher, so that no header of the device is needed; empty where the device is not
// loaded.
inline std::map<std::string, double> ReadMetrics() {
  std::map<std::string, double> metrics;
  const auto op = c10::Dispatcher::singleton().findSchema({"torch_lazy::metrics", ""});
  if (!op) return metrics;
  torch::jit::Stack stack;
  op->callBoxed(&stack);
  const std::string json = stack.back().toStringRef();
  for (const char* name : {"calls_total", "traces_run", "kernels_compiled", "kernel_launches", "syncs"}) {
    const size_t at = json.find('"' + std::string(name) + "\":");
    if (at == std::string::npos) continue;
    const char* value = json.c_str() + json.find(':', at) + 1;
    while (*value == ' ') ++value;
    if (*value != '{') {
      metrics[name] = std::strtod(value, nullptr);
      continue;
    }
    // An object {"reason": count, ...}: the sum of the counts.
    for (; *value != '}' && *value != '\0'; ++value) {
      if (*value == ':') metrics[name] += std::strtod(value + 1, nullptr);
    }
  }
  return metrics;
}

// What one training took.
struct Result {
  std::string device;
  double accuracy = 0;
  std::vector<double> epoch_ms_per_step;
  double kernels_per_step = 0;  // of the last epoch
  std::map<std::string, double> metrics;
  std::chrono::steady_clock::time_point start;

  explicit Result(std::string name) : device(std::move(name)) {}

  void BeginEpoch() {
    metrics = ReadMetrics();
    start = std::chrono::steady_clock::now();
  }

  // Returns the mean milliseconds of a step.
  double EndEpoch(int64_t num_steps) {
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    epoch_ms_per_step.push_back(time.count() / static_cast<double>(num_steps));
    const double launches_before = metrics["kernel_launches"];
    metrics = ReadMetrics();
    kernels_per_step = (metrics["kernel_launches"] - launches_before) / static_cast<double>(num_steps);
    return epoch_ms_per_step.back();
  }

  // The median epoch after the first, which also starts threads, allocates, and compiles.
  double TypicalMsPerStep() const {
    std::vector<double> later = epoch_ms_per_step;
    if (later.size() > 1) later.erase(later.begin());
    if (later.empty()) return 0;
    std::sort(later.begin(), later.end());
    return later[later.size() / 2];
  }
};

// A bar on a terminal; elsewhere only the line at the end of an epoch.
class ProgressBar {
 public:
  ProgressBar(const std::string& device, int64_t epoch, int64_t num_epochs, int64_t num_steps)
      : num_steps_(num_steps), shown_(isatty(STDOUT_FILENO) != 0) {
    char text[64];
    std::snprintf(text, sizeof text, "%-4s  epoch %2ld/%ld  ", device.c_str(), epoch, num_epochs);
    title_ = text;
  }

  void Show(int64_t step) {
    if (!shown_) return;
    const size_t filled = static_cast<size_t>(kWidth * step / num_steps_);
    std::printf("\r%s[%s%s]", title_.c_str(), std::string(filled, '#').c_str(),
                std::string(kWidth - filled, '.').c_str());
    std::fflush(stdout);
  }

  void Finish(double loss, double accuracy, double ms_per_step) {
    if (!shown_) std::printf("%s", title_.c_str());
    std::printf("  loss %.4f  test accuracy %5.2f %%  %6.2f ms a step\n", loss, 100 * accuracy, ms_per_step);
    std::fflush(stdout);
  }

 private:
  static constexpr int64_t kWidth = 20;
  int64_t num_steps_;
  bool shown_;
  std::string title_;
};

inline void PrintTable(std::vector<Result>& results) {
  const auto row = [&](const char* title, const char* format, auto value) {
    std::printf("%-24s", title);
    for (Result& result : results) std::printf(format, value(result));
    std::printf("\n");
  };
  std::printf("\n");
  row("", "%12s", [](Result& r) { return r.device.c_str(); });
  row("ms a step, first epoch", "%12.2f",
      [](Result& r) { return r.epoch_ms_per_step.empty() ? 0 : r.epoch_ms_per_step.front(); });
  row("ms a step, later epochs", "%12.2f", [](Result& r) { return r.TypicalMsPerStep(); });
  row("test accuracy, %", "%12.2f", [](Result& r) { return 100 * r.accuracy; });
  for (Result& result : results) {
    if (result.device.rfind("lazy", 0) != 0) continue;
    std::printf(
        "\nof device lazy: calls %.0f, traces run %.0f, kernels compiled %.0f, kernels a step "
        "%.1f, syncs %.0f\n",
        result.metrics["calls_total"], result.metrics["traces_run"], result.metrics["kernels_compiled"],
        result.kernels_per_step, result.metrics["syncs"]);
  }
}
