// SPDX-License-Identifier: Apache-2.0
// The graphs that were used last: a program of many sizes has a plan for each, and their graphs would hold memory for all.
#pragma once

#include <list>
#include <mutex>

#include "absl/container/flat_hash_map.h"

namespace torch_lazy::lazy {

class GraphedPlan;

class NewestGraphs {
 public:
  static NewestGraphs& Get();

  // The plan has a graph and uses it. Another's may be dropped for it, unless that is running.
  void Use(GraphedPlan* plan);
  void Remove(GraphedPlan* plan);

 private:
  std::mutex lock_;
  std::list<GraphedPlan*> list_;  // the newest first
  absl::flat_hash_map<GraphedPlan*, std::list<GraphedPlan*>::iterator> places_;
};

}  // namespace torch_lazy::lazy
