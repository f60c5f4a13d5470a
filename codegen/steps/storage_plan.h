// SPDX-License-Identifier: Apache-2.0
// In which buffer each value lies.
//
// A group writes into the place of a temporary that it reads last, where it reads each element just where it writes it.
//
// An output that takes a parameter's buffer is written straight into it, and a call that writes in
// place works in its operand's buffer, if every other reader of the old bytes can run before. Where
// that closes a cycle, a copy is asked for, and planning starts again with the copy in the graph.
#pragma once

#include <vector>

#include "codegen/layout/copies.h"
#include "codegen/plan/plan.h"
#include "codegen/steps/tasks.h"

namespace torch_lazy::codegen {

struct StoragePlan {
  std::vector<BufferSpec> buffers;
  std::vector<int32_t> buffer_of;  // of each stored value; -1: none
  CopyPlaces missing_copies;       // not empty: the plan is of no use without them
};

// Adds to `tasks->order` that readers of old bytes come first.
StoragePlan PlanStorage(const ir::Graph& graph, const Partition& partition, const std::vector<Body>& bodies,
                        Tasks* tasks);

}  // namespace torch_lazy::codegen
