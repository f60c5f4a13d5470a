// SPDX-License-Identifier: Apache-2.0
// Why two operators do not share a kernel.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/plan/compile_options.h"
#include "ir/graph.h"

namespace torch_lazy::codegen {

// `a` and `b`: nodes of the graph, as it is before any pass. A sentence; that they share one, if they do. Nothing is
// kept for it: passes and partitioning are done again.
absl::StatusOr<std::string> WhyApart(const ir::Graph& graph, const CompileOptions& options, ir::Value a, ir::Value b);

// Two nodes of the graph that kernels of their own compute, although one needs what the other makes.
struct Apart {
  ir::Value made, needed_by;
  absl::string_view rule, words;  // why: the rule's name, and the end of a sentence: "a kernel of its own, since ..."
};

// All such pairs, each once. A node that only moves elements is none of them.
absl::StatusOr<std::vector<Apart>> AllApart(const ir::Graph& graph, const CompileOptions& options);

}  // namespace torch_lazy::codegen
