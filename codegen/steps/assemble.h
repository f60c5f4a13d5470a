// SPDX-License-Identifier: Apache-2.0
// Kernels, steps and buffers put together into a plan.
#pragma once

#include "codegen/plan/compile_options.h"
#include "codegen/steps/storage_plan.h"

namespace torch_lazy::codegen {

// `original` is the graph that Compile was given: its calls are what the plan's steps name.
Plan Assemble(const ir::Graph& original, const ir::Graph& graph, const Factors& factors, const Partition& partition,
              const std::vector<Body>& bodies, const Tasks& tasks, const StoragePlan& storage,
              const CompileOptions& options);

}  // namespace torch_lazy::codegen
