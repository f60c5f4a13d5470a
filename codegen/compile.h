// SPDX-License-Identifier: Apache-2.0
// From a graph to a plan: the table of contents of the compiler.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "codegen/plan/plan.h"
#include "codegen/plan/target.h"
#include "ir/graph.h"

namespace torch_lazy::codegen {

struct CompileOptions {
  Target target = Target::kCpu;
  // The sizes seen first, one per symbol: used only to weigh costs, never for correctness.
  std::vector<int64_t> typical_extents;
  bool verify = false;      // check the graph after each pass
  std::string dump_folder;  // write graph, each pass and kernels there; empty: nothing
};

absl::StatusOr<Plan> Compile(const ir::Graph& graph, const CompileOptions& options);

}  // namespace torch_lazy::codegen
