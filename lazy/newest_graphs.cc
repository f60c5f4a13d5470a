// SPDX-License-Identifier: Apache-2.0
#include "lazy/newest_graphs.h"

#include "lazy/graphed_plan.h"

namespace torch_lazy::lazy {

constexpr size_t kMostGraphs = 32;

NewestGraphs& NewestGraphs::Get() {
  static NewestGraphs* const newest = new NewestGraphs;
  return *newest;
}

void NewestGraphs::Use(GraphedPlan* plan) {
  const std::lock_guard<std::mutex> lock(lock_);
  if (const auto place = places_.find(plan); place != places_.end()) {
    list_.splice(list_.begin(), list_, place->second);
    return;
  }
  places_[plan] = list_.insert(list_.begin(), plan);
  if (list_.size() <= kMostGraphs) return;
  GraphedPlan* const oldest = list_.back();  // alive: it removes itself, and waits for the lock
  if (!oldest->TryDrop()) return;
  places_.erase(oldest);
  list_.pop_back();
}

void NewestGraphs::Remove(GraphedPlan* plan) {
  const std::lock_guard<std::mutex> lock(lock_);
  const auto place = places_.find(plan);
  if (place == places_.end()) return;
  list_.erase(place->second);
  places_.erase(place);
}

}  // namespace torch_lazy::lazy
