// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedule.h"

#include <algorithm>
#include <set>

#include "base/check.h"

namespace torch_lazy::codegen {
namespace {

constexpr double kCostly = 100000;

class Scheduler {
 public:
  Scheduler(const Units& units, const std::vector<double>& cost) : units_(units), cost_(cost) {}

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
    LAZY_CHECK(done == units_.units.size(), "units wait for each other: ", done, " of ",
               units_.units.size(), " can run");
    return std::move(steps_);
  }

 private:
  using Ready = std::set<std::pair<int, int>>;  // position, unit

  bool IsCall(int unit) const { return units_.units[unit].call != ir::kNoValue; }

  void MakeReady(int unit) {
    (IsCall(unit) ? ready_calls_ : ready_groups_).insert({units_.units[unit].position, unit});
  }

  std::vector<int> NextStep() {
    if (!ready_calls_.empty()) return {ready_calls_.begin()->second};
    const int next_call = calls_left_.empty() ? INT32_MAX : *calls_left_.begin();
    std::vector<int> step;
    for (const auto& [position, unit] : ready_groups_) {
      if (position < next_call || cost_[unit] < kCostly || step.empty()) step.push_back(unit);
    }
    return step;
  }

  void Finish(int unit) {
    const int position = units_.units[unit].position;
    (IsCall(unit) ? ready_calls_ : ready_groups_).erase({position, unit});
    if (IsCall(unit)) calls_left_.erase(position);
    for (const int next : units_.order.successors(unit)) {
      if (--waits_for_[next] == 0) MakeReady(next);
    }
  }

  const Units& units_;
  const std::vector<double>& cost_;
  std::vector<int> waits_for_;
  std::set<int> calls_left_;
  Ready ready_calls_, ready_groups_;
  std::vector<std::vector<int>> steps_;
};

}  // namespace

std::vector<std::vector<int>> MakeSchedule(const Units& units, const std::vector<double>& cost) {
  return Scheduler(units, cost).Run();
}

}  // namespace torch_lazy::codegen
