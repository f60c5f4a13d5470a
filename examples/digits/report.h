// SPDX-License-Identifier: Apache-2.0
// What the digits program shows: a line an epoch, where the time went, and the digits that it was least sure of.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>

using Metrics = std::map<std::string, double>;

// Counters of the lazy device, by the names of its metrics() in JSON. They are read through PyTorch's dispatcher, so
// that no header of the device is needed; all are 0 where the device is not loaded.
inline Metrics ReadMetrics() {
  Metrics metrics;
  const auto op = c10::Dispatcher::singleton().findSchema({"torch_lazy::metrics", ""});
  if (!op) return metrics;
  torch::jit::Stack stack;
  op->callBoxed(&stack);
  const std::string json = stack.back().toStringRef();
  for (const char* name : {"calls_total", "compile_seconds", "compiles_pending", "kernel_launches", "kernels_compiled",
                           "kernels_from_disk", "run_seconds"}) {
    const std::string key = '"' + std::string(name) + "\": ";
    const size_t at = json.find(key);
    if (at != std::string::npos) metrics[name] = std::strtod(json.c_str() + at + key.size(), nullptr);
  }
  return metrics;
}

inline double Seconds(std::chrono::steady_clock::duration time) { return std::chrono::duration<double>(time).count(); }

struct Epoch {
  double loss = 0;
  // of a step
  double ms = 0, run_ms = 0, kernels = 0, calls = 0;
};

// Measures an epoch, from its making to End.
class EpochMeter {
 public:
  Epoch End(double loss, int64_t num_steps) {
    const double steps = static_cast<double>(num_steps), seconds = Seconds(std::chrono::steady_clock::now() - start_);
    Metrics now = ReadMetrics();
    const auto per_step = [&](const char* name) { return (now[name] - before_[name]) / steps; };
    return {loss, 1e3 * seconds / steps, 1e3 * per_step("run_seconds"), per_step("kernel_launches"),
            per_step("calls_total")};
  }

 private:
  Metrics before_ = ReadMetrics();
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

struct Training {
  explicit Training(std::string name) : device(std::move(name)) {}

  std::string device;
  std::vector<Epoch> epochs;
  double accuracy = 0;
  double waited_seconds = 0;  // for compilers

  bool is_lazy() const { return device.rfind("lazy", 0) == 0; }

  // The median of the second half, by its milliseconds: by then everything is compiled.
  Epoch Typical() const {
    std::vector<Epoch> later(epochs.begin() + static_cast<std::ptrdiff_t>(epochs.size() / 2), epochs.end());
    if (later.empty()) return {};
    const auto middle = later.begin() + static_cast<std::ptrdiff_t>(later.size() / 2);
    std::nth_element(later.begin(), middle, later.end(), [](const Epoch& a, const Epoch& b) { return a.ms < b.ms; });
    return *middle;
  }
};

// On a terminal, what is going on; the next line takes its place.
inline void ShowProgress(const std::string& text) {
  if (isatty(STDOUT_FILENO) == 0) return;
  std::printf("\r\033[K%s\r", text.c_str());
  std::fflush(stdout);
}

inline void PrintTitle(const std::vector<std::string>& devices) {
  std::printf("     ");
  for (const std::string& device : devices) std::printf(device == "lazy" ? "%44s" : "%26s", device.c_str());
  std::printf("\nepoch");
  for (size_t k = 0; k < devices.size(); ++k) std::printf("%14s%12s", "loss", "ms a step");
  std::printf(devices.back() == "lazy" ? "%18s\n" : "\n", "kernels a step");
}

// One line of all trainings that have come so far.
inline void PrintEpoch(const std::vector<Training>& trainings, size_t epoch) {
  ShowProgress("");
  std::printf("%5zu", epoch + 1);
  for (const Training& training : trainings) {
    const Epoch& it = training.epochs[epoch];
    std::printf("%14.4f%12.2f", it.loss, it.ms);
    if (training.is_lazy()) std::printf("%18.1f", it.kernels);
  }
  std::printf("\n");
  std::fflush(stdout);
}

// Waits until no kernel is being compiled. A program need not: it goes on meanwhile, call by call.
inline double WaitForCompilers() {
  if (ReadMetrics()["compiles_pending"] == 0) return 0;
  const auto start = std::chrono::steady_clock::now();
  ShowProgress("      kernels are being compiled");
  while (ReadMetrics()["compiles_pending"] > 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double seconds = Seconds(std::chrono::steady_clock::now() - start);
  std::printf("      ... %.1f s for the compiler; the next run finds its kernels on disk\n", seconds);
  return seconds;
}

inline void PrintBar(const char* title, double ms, double whole) {
  const auto length = static_cast<int>(std::lround(40 * std::clamp(ms / whole, 0.0, 1.0)));
  std::string bar;
  for (int i = 0; i < length; ++i) bar += "\u2588";
  std::printf("  %-34s %6.2f ms  %s\n", title, ms, bar.c_str());
}

// Where the time of a typical step went. What runs beside the program's own thread is counted as running.
inline void PrintWhereTimeWent(const Training& lazy) {
  const Epoch step = lazy.Typical();
  const double running = std::min(step.run_ms, step.ms);
  Metrics metrics = ReadMetrics();
  std::printf("\nwhere a step's %.2f ms went:\n", step.ms);
  PrintBar("running kernels and library calls", running, step.ms);
  char recording[64];
  std::snprintf(recording, sizeof recording, "recording %.0f calls, and the rest", step.calls);
  PrintBar(recording, step.ms - running, step.ms);
  std::printf("compiled %.0f kernels in %.1f s beside the program, found %.0f on disk; waited %.1f s\n",
              metrics["kernels_compiled"], metrics["compile_seconds"], metrics["kernels_from_disk"],
              lazy.waited_seconds);
}

inline void PrintComparison(const std::vector<Training>& trainings) {
  std::printf("\n");
  for (const Training& training : trainings) {
    std::printf("%-5s %7.2f ms a step in the second half, %5.2f %% of the test images right\n", training.device.c_str(),
                training.Typical().ms, 100 * training.accuracy);
  }
  if (trainings.size() == 2) {
    std::printf("%s is %.2f times as fast as %s\n", trainings[1].device.c_str(),
                trainings[0].Typical().ms / trainings[1].Typical().ms, trainings[0].device.c_str());
  }
}

// Some images of 8 x 8 pixels of 0 to 1 side by side, each with a caption of at most 16 letters.
inline void PrintImages(const std::vector<std::vector<float>>& images, const std::vector<std::string>& captions) {
  static const char* const kShades[] = {" ", "\u2591", "\u2592", "\u2593", "\u2588"};
  for (size_t y = 0; y < 8; ++y) {
    for (const std::vector<float>& image : images) {
      std::printf("  ");
      for (size_t x = 0; x < 8; ++x) {
        const char* const shade = kShades[std::clamp<long>(std::lround(4 * image[8 * y + x]), 0, 4)];
        std::printf("%s%s", shade, shade);
      }
    }
    std::printf("\n");
  }
  for (const std::string& caption : captions) std::printf("  %-16s", caption.c_str());
  std::printf("\n");
}
