// SPDX-License-Identifier: Apache-2.0
// In which order tasks run, and which groups run in one launch.
#pragma once

#include <vector>

#include "codegen/plan/target.h"
#include "codegen/steps/tasks.h"

namespace torch_lazy::codegen {

// Each inner list is a step: one call, or groups that do not depend on each other.
//
// A call runs as soon as it can, in the program's order. When none can, all groups that can are
// launched together, so that the hundreds of small updates of an optimizer share a few launches;
// but a costly group waits for its place in the program, since running it early would only keep its
// result in memory. A group whose place comes before that of the next call runs first if it ends
// the use of more memory than it takes.
//
// On a GPU each launch takes its time, and most groups take little: what no call waits for (sums of
// shares that become gradients, updates) runs after the last call, or once memory is nearly as full
// as it has been.
struct TaskCost {
  double nanoseconds = 0;
  double bytes_freed = 0;  // of what it reads last, without what it writes
};
std::vector<std::vector<int>> MakeSchedule(const Tasks& tasks, const std::vector<TaskCost>& costs,
                                           const std::vector<double>& bytes,  // of each temporary
                                           Target target);

}  // namespace torch_lazy::codegen
