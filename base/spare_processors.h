// SPDX-License-Identifier: Apache-2.0
// How many of the processors that this process may use are left to the calling thread.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "absl/strings/string_view.h"

namespace torch_lazy::base {

// Of the text of /proc/stat: how long the `allowed` processors have been idle, or have worked for processes of low
// priority, since the machine started; in ticks of _SC_CLK_TCK. Nullopt where the text does not name all of them.
std::optional<int64_t> IdleTicks(absl::string_view stat, const cpu_set_t& allowed);

// How many processors the process may use, 1 where that is not known.
int NumAllowedProcessors();

// For one thread, which asks again and again.
class SpareProcessors {
 public:
  using Clock = std::chrono::steady_clock;

  // What nobody else uses: processors that are idle, and the share of them that the calling thread has itself.
  SpareProcessors();
  // `seconds` returns the processors' time that is spare, all together, since any moment; nullopt where it is not
  // known.
  explicit SpareProcessors(std::function<std::optional<double>()> seconds) : of_all_(std::move(seconds)) {}

  // The mean over the last tenth of a second. Zero where it is not known: at first, and after a second without a
  // question.
  double Number(Clock::time_point now = Clock::now());

 private:
  std::function<std::optional<double>()> of_all_;
  Clock::time_point asked_at_;
  std::optional<double> seconds_;
  double number_ = 0;
};

}  // namespace torch_lazy::base
