// SPDX-License-Identifier: Apache-2.0
// From a graph to a plan: the table of contents of the compiler.
#pragma once

#include "absl/status/statusor.h"
#include "codegen/plan/compile_options.h"
#include "codegen/plan/plan.h"
#include "ir/graph.h"
#include "ir/passes/pass.h"

namespace torch_lazy::codegen {

// Passes, then the rest.
absl::StatusOr<Plan> Compile(const ir::Graph& graph, const CompileOptions& options);

// A graph that passes have been over, and what they have told beside it.
struct PassedGraph {
  ir::Graph graph;
  ir::PassContext context;
};
PassedGraph Unpassed(const ir::Graph& graph, const CompileOptions& options);
absl::StatusOr<PassedGraph> RunAllPasses(const ir::Graph& graph, const CompileOptions& options);

// With the numbers of the symbols that passes have added.
CompileOptions OptionsAfter(const PassedGraph& passed, CompileOptions options);

// The rest. `graph`: as it was before.
absl::StatusOr<Plan> CompilePassed(const ir::Graph& graph, const PassedGraph& passed, const CompileOptions& asked);

}  // namespace torch_lazy::codegen
