// SPDX-License-Identifier: Apache-2.0
// Who needs a value, while a graph is partitioned.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace torch_lazy::codegen {

// Groups, at a map, and tasks that need it in memory.
struct Readers {
  struct InGroup {
    int group;
    int map;
    int broadcast;  // how many ops in a row are computed again and again if this one is
  };
  absl::InlinedVector<InGroup, 2> groups;
  absl::InlinedVector<int, 2> tasks;  // calls, and groups that cannot compute it
  bool stored = false;                // an output, or one of `tasks` is there

  bool Has(int group) const {
    return std::any_of(groups.begin(), groups.end(), [&](const InGroup& reader) { return reader.group == group; });
  }

  // The map at which the group reads it first.
  int MapIn(int group) const {
    for (const InGroup& reader : groups) {
      if (reader.group == group) return reader.map;
    }
    return -1;
  }

  // Each once. Groups of nodes nearer to the start of the program have higher numbers, and come
  // first.
  std::vector<int> Groups() const {
    std::vector<int> all;
    for (const InGroup& reader : groups) all.push_back(reader.group);
    std::sort(all.begin(), all.end(), std::greater<int>());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }
};

}  // namespace torch_lazy::codegen
