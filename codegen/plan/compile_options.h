// SPDX-License-Identifier: Apache-2.0
// What a graph is compiled for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/plan/target.h"

namespace torch_lazy::codegen {

struct CompileOptions {
  Target target = Target::kCpu;
  // The sizes seen first, one per symbol: used only to weigh costs, never for correctness.
  std::vector<int64_t> seen_extents;
  bool verify = false;      // check the graph after each pass
  std::string dump_folder;  // write graph, each pass and kernels there; empty: nothing
};

}  // namespace torch_lazy::codegen
