// SPDX-License-Identifier: Apache-2.0
// From a graph to a plan: the table of contents of the compiler.
#pragma once

#include "absl/status/statusor.h"
#include "codegen/plan/compile_options.h"
#include "codegen/plan/plan.h"
#include "ir/graph.h"

namespace torch_lazy::codegen {

absl::StatusOr<Plan> Compile(const ir::Graph& graph, const CompileOptions& options);

}  // namespace torch_lazy::codegen
