// SPDX-License-Identifier: Apache-2.0
#include "codegen/partition/dependencies.h"

#include <algorithm>

namespace torch_lazy::codegen {

void Dependencies::AddEdge(int before, int after) {
  std::vector<int>& list = successors_[before];
  if (before != after && std::find(list.begin(), list.end(), after) == list.end()) list.push_back(after);
}

bool Dependencies::Reaches(int from, int to) const {
  ++search_;
  std::vector<int> stack = {from};
  while (!stack.empty()) {
    const int task = stack.back();
    stack.pop_back();
    if (task == to) return true;
    for (const int next : successors_[task]) {
      if (visited_in_[next] == search_) continue;
      visited_in_[next] = search_;
      stack.push_back(next);
    }
  }
  return false;
}

}  // namespace torch_lazy::codegen
