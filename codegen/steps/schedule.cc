// SPDX-License-Identifier: Apache-2.0
#include "codegen/steps/schedule.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "codegen/partition/lifetime.h"

namespace torch_lazy::codegen {
namespace {

constexpr double kNearlyFull = 0.95;

// Nanoseconds on one thread of a CPU.
double CostlyOn(Target target) { return target == Target::kCuda ? 1e6 : 1e5; }

class Scheduler {
 public:
  Scheduler(const Tasks& tasks, const std::vector<TaskCost>& costs, const std::vector<double>& bytes, Target target)
      : tasks_(tasks), costs_(costs), bytes_(bytes), costly_(CostlyOn(target)) {
    for (const auto& readers : tasks.readers) reads_left_.push_back(readers.size());
    waits_for_end_.assign(tasks.tasks.size(), target == Target::kCuda);
    MarkWaitedFor();
  }

  std::vector<std::vector<int>> Run() {
    waits_for_.assign(tasks_.tasks.size(), 0);
    for (size_t u = 0; u < tasks_.tasks.size(); ++u) {
      for (const int next : tasks_.order.successors(static_cast<int>(u))) ++waits_for_[next];
    }
    for (size_t u = 0; u < tasks_.tasks.size(); ++u) {
      if (IsCall(static_cast<int>(u))) calls_left_.insert(tasks_.tasks[u].position);
      if (waits_for_[u] == 0) MakeReady(static_cast<int>(u));
    }
    while (!ready_calls_.empty() || !ready_groups_.empty()) {
      const std::vector<int> step = NextStep();
      for (const int task : step) Finish(task);
      steps_.push_back(step);
    }
    size_t done = 0;
    for (const std::vector<int>& step : steps_) done += step.size();
    LAZY_CHECK(done == tasks_.tasks.size(), "tasks wait for each other: ", done, " of ", tasks_.tasks.size(),
               " can run");
    return std::move(steps_);
  }

 private:
  using Ready = std::set<std::pair<int, int>>;  // position, task

  bool IsCall(int task) const { return tasks_.tasks[task].call != ir::kNoValue; }

  void MakeReady(int task) {
    (IsCall(task) ? ready_calls_ : ready_groups_).insert({tasks_.tasks[task].position, task});
  }

  std::vector<int> NextStep() {
    if (!ready_calls_.empty() && !FreesBefore(ready_calls_.begin()->first)) {
      return {ready_calls_.begin()->second};
    }
    const int next_call = calls_left_.empty() ? INT32_MAX : *calls_left_.begin();
    std::vector<int> step;
    for (const auto& [position, task] : ready_groups_) {
      if (Waits(task)) continue;
      if (position < next_call || costs_[task].nanoseconds < costly_ || step.empty()) step.push_back(task);
    }
    return step;
  }

  // The calls, and all that they wait for: what they read, and who reads what they replace.
  void MarkWaitedFor() {
    std::vector<std::vector<int>> before(tasks_.tasks.size());
    std::vector<int> marked;
    for (int u = 0; u < static_cast<int>(tasks_.tasks.size()); ++u) {
      for (const int next : tasks_.order.successors(u)) before[next].push_back(u);
      if (IsCall(u)) marked.push_back(u);
    }
    while (!marked.empty()) {
      const int task = marked.back();
      marked.pop_back();
      if (!waits_for_end_[task]) continue;
      waits_for_end_[task] = false;
      marked.insert(marked.end(), before[task].begin(), before[task].end());
    }
  }

  bool Waits(int task) const { return waits_for_end_[task] && !calls_left_.empty() && live_ < kNearlyFull * peak_; }

  bool FreesBefore(int call_position) const {
    return std::any_of(ready_groups_.begin(), ready_groups_.end(), [&](const auto& group) {
      return group.first < call_position && costs_[group.second].bytes_freed > kFewBytes && !Waits(group.second);
    });
  }

  void Finish(int task) {
    const int position = tasks_.tasks[task].position;
    (IsCall(task) ? ready_calls_ : ready_groups_).erase({position, task});
    if (IsCall(task)) calls_left_.erase(position);
    for (const ir::Value v : tasks_.tasks[task].writes) live_ += reads_left_[v] > 0 ? bytes_[v] : 0;
    peak_ = std::max(peak_, live_);
    for (const ir::Value v : tasks_.tasks[task].reads) live_ -= --reads_left_[v] == 0 ? bytes_[v] : 0;
    for (const int next : tasks_.order.successors(task)) {
      if (--waits_for_[next] == 0) MakeReady(next);
    }
  }

  const Tasks& tasks_;
  const std::vector<TaskCost>& costs_;
  const std::vector<double>& bytes_;
  const double costly_;
  double live_ = 0, peak_ = 0;       // bytes of temporaries
  std::vector<size_t> reads_left_;   // of each value
  std::vector<bool> waits_for_end_;  // does no call wait for it?
  std::vector<int> waits_for_;
  std::set<int> calls_left_;
  Ready ready_calls_, ready_groups_;
  std::vector<std::vector<int>> steps_;
};

}  // namespace

std::vector<std::vector<int>> MakeSchedule(const Tasks& tasks, const std::vector<TaskCost>& costs,
                                           const std::vector<double>& bytes, Target target) {
  return Scheduler(tasks, costs, bytes, target).Run();
}

}  // namespace torch_lazy::codegen
