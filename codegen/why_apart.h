// SPDX-License-Identifier: Apache-2.0
// Why two operators do not share a kernel.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "codegen/plan/compile_options.h"
#include "ir/graph.h"

namespace torch_lazy::codegen {

// `a` and `b`: nodes of the graph, as it is before any pass. A sentence; that they share one, if they do. Nothing is
// kept for it: passes and partitioning are done again.
absl::StatusOr<std::string> WhyApart(const ir::Graph& graph, const CompileOptions& options, ir::Value a, ir::Value b);

}  // namespace torch_lazy::codegen
