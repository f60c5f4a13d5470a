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
  Scheduler(const Units& units, const std::vector<UnitCost>& costs, const std::vector<double>& bytes, Target target)
      : units_(units), costs_(costs), bytes_(bytes), costly_(CostlyOn(target)) {
    for (const auto& readers : units.readers) reads_left_.push_back(readers.size());
    waits_for_end_.assign(units.units.size(), target == Target::kCuda);
    MarkWaitedFor();
  }

  std::vector<std::vector<int>> Run() {
    waits_for_.assign(units_.units.size(), 0);
    for (size_t u = 0; u < units_.units.size(); ++u) {
      for (const int next : units_.order.successors(static_cast<int>(u))) ++waits_for_[next];
    }
    for (size_t u = 0; u < units_.units.size(); ++u) {
      if (IsCall(static_cast<int>(u))) calls_left_.insert(units_.units[u].position);
      if (waits_for_[u] == 0) MakeReady(static_cast<int>(u));
    }
    while (!ready_calls_.empty() || !ready_groups_.empty()) {
      const std::vector<int> step = NextStep();
      for (const int unit : step) Finish(unit);
      steps_.push_back(step);
    }
    size_t done = 0;
    for (const std::vector<int>& step : steps_) done += step.size();
    LAZY_CHECK(done == units_.units.size(), "units wait for each other: ", done, " of ", units_.units.size(),
               " can run");
    return std::move(steps_);
  }

 private:
  using Ready = std::set<std::pair<int, int>>;  // position, unit

  bool IsCall(int unit) const { return units_.units[unit].call != ir::kNoValue; }

  void MakeReady(int unit) {
    (IsCall(unit) ? ready_calls_ : ready_groups_).insert({units_.units[unit].position, unit});
  }

  std::vector<int> NextStep() {
    if (!ready_calls_.empty() && !FreesBefore(ready_calls_.begin()->first)) {
      return {ready_calls_.begin()->second};
    }
    const int next_call = calls_left_.empty() ? INT32_MAX : *calls_left_.begin();
    std::vector<int> step;
    for (const auto& [position, unit] : ready_groups_) {
      if (Waits(unit)) continue;
      if (position < next_call || costs_[unit].nanoseconds < costly_ || step.empty()) step.push_back(unit);
    }
    return step;
  }

  // The calls, and all that they wait for: what they read, and who reads what they replace.
  void MarkWaitedFor() {
    std::vector<std::vector<int>> before(units_.units.size());
    std::vector<int> marked;
    for (int u = 0; u < static_cast<int>(units_.units.size()); ++u) {
      for (const int next : units_.order.successors(u)) before[next].push_back(u);
      if (IsCall(u)) marked.push_back(u);
    }
    while (!marked.empty()) {
      const int unit = marked.back();
      marked.pop_back();
      if (!waits_for_end_[unit]) continue;
      waits_for_end_[unit] = false;
      marked.insert(marked.end(), before[unit].begin(), before[unit].end());
    }
  }

  bool Waits(int unit) const { return waits_for_end_[unit] && !calls_left_.empty() && live_ < kNearlyFull * peak_; }

  bool FreesBefore(int call_position) const {
    return std::any_of(ready_groups_.begin(), ready_groups_.end(), [&](const auto& group) {
      return group.first < call_position && costs_[group.second].bytes_freed > kFewBytes && !Waits(group.second);
    });
  }

  void Finish(int unit) {
    const int position = units_.units[unit].position;
    (IsCall(unit) ? ready_calls_ : ready_groups_).erase({position, unit});
    if (IsCall(unit)) calls_left_.erase(position);
    for (const ir::Value v : units_.units[unit].writes) live_ += reads_left_[v] > 0 ? bytes_[v] : 0;
    peak_ = std::max(peak_, live_);
    for (const ir::Value v : units_.units[unit].reads) live_ -= --reads_left_[v] == 0 ? bytes_[v] : 0;
    for (const int next : units_.order.successors(unit)) {
      if (--waits_for_[next] == 0) MakeReady(next);
    }
  }

  const Units& units_;
  const std::vector<UnitCost>& costs_;
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

std::vector<std::vector<int>> MakeSchedule(const Units& units, const std::vector<UnitCost>& costs,
                                           const std::vector<double>& bytes, Target target) {
  return Scheduler(units, costs, bytes, target).Run();
}

}  // namespace torch_lazy::codegen
