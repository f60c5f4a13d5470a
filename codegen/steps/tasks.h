// SPDX-License-Identifier: Apache-2.0
// A plan's tasks: groups and calls, with what each reads and writes.
#pragma once

#include <vector>

#include "codegen/kernels/body.h"
#include "codegen/partition/dependencies.h"

namespace torch_lazy::codegen {

struct Task {
  int group = -1;                 // of the partition, or
  ir::Value call = ir::kNoValue;  // a call or matmul node
  std::vector<ir::Value> reads;   // stored values, each once; for a concat, its parts
  std::vector<ir::Value> writes;  // stored values: roots, results
  int position = 0;               // in the program
};

struct Tasks {
  std::vector<Task> tasks;                // groups in the partition's order, then calls in the program's
  std::vector<int> writer;                // of each stored value; -1: a parameter
  std::vector<std::vector<int>> readers;  // of each stored value
  Dependencies order;
};

Tasks MakeTasks(const ir::Graph& graph, const Factors& factors, const Partition& partition,
                const std::vector<Body>& bodies);

// A part of a concat that is made of nothing, zeros say, waits for the others: no memory is held for it alone.
void DelayFills(const ir::Graph& graph, Tasks* tasks);

}  // namespace torch_lazy::codegen
