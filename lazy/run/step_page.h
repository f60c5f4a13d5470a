// SPDX-License-Identifier: Apache-2.0
// The page about a plan that option dump writes: what its steps are made of, what flows between them, how long each
// takes.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "codegen/plan/plan.h"

namespace torch_lazy::lazy {

// Thread-safe: a plan may run on several threads at once.
class StepPage {
 public:
  // `size_bytes`: of each of the plan's buffers. All must outlive the page.
  StepPage(std::string folder, const ir::Graph& graph, const codegen::Plan& plan,
           const std::vector<size_t>& size_bytes);

  // Seconds that each step of one run has taken. Writes "<folder>/step.html" after runs 1, 2, 4, 8, ...
  void AddRun(const std::vector<double>& seconds);

 private:
  struct Row {
    std::string what, details;     // one line; what is behind it
    double bytes = 0;              // read and written, each buffer whole
    double mean = 0, fastest = 0;  // seconds
  };
  std::string CallOf(const codegen::Step& step) const;
  std::string DetailsOf(const codegen::Step& step) const;
  double BytesOf(const codegen::Step& step) const;
  void Write() const;
  std::string Table() const;
  std::string Flow() const;

  const std::string folder_;
  const ir::Graph& graph_;
  const codegen::Plan& plan_;
  const std::vector<size_t>& size_bytes_;
  std::mutex lock_;  // over what follows
  std::vector<Row> rows_;
  int64_t num_runs_ = 0;
};

// Measures a run's steps, one after the other; does nothing without a page.
class StepClock {
 public:
  explicit StepClock(StepPage* page) : page_(page) {
    if (page_ != nullptr) last_ = Clock::now();
  }
  void Step() {
    if (page_ == nullptr) return;
    const Clock::time_point now = Clock::now();
    seconds_.push_back(std::chrono::duration<double>(now - last_).count());
    last_ = now;
  }
  void Done() {
    if (page_ != nullptr) page_->AddRun(seconds_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  StepPage* const page_;
  std::vector<double> seconds_;
  Clock::time_point last_;
};

}  // namespace torch_lazy::lazy
