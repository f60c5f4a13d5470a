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

// The rest: `work` is what passes have made of the graph, and of the context.
absl::StatusOr<Plan> CompilePassed(const ir::Graph& graph, ir::Graph work, const ir::PassContext& context,
                                   CompileOptions options);

ir::PassContext ContextFor(const CompileOptions& options);

}  // namespace torch_lazy::codegen
