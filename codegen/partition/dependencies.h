// SPDX-License-Identifier: Apache-2.0
// Which task must come before which.
#pragma once

#include <cstdint>
#include <vector>

namespace torch_lazy::codegen {

class Dependencies {
 public:
  int AddTask() {
    successors_.emplace_back();
    visited_in_.push_back(0);
    return static_cast<int>(successors_.size()) - 1;
  }
  void AddEdge(int before, int after);   // again is fine; to itself is none
  bool Reaches(int from, int to) const;  // true for from == to
  int size() const { return static_cast<int>(successors_.size()); }
  const std::vector<int>& successors(int task) const { return successors_[task]; }

 private:
  std::vector<std::vector<int>> successors_;
  mutable std::vector<uint32_t> visited_in_;  // the search that last came by
  mutable uint32_t search_ = 0;
};

}  // namespace torch_lazy::codegen
