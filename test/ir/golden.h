// SPDX-License-Identifier: Apache-2.0
// Golden tests: files of graphs, each with the text that a transformation must make of it.
//
//   // RUN: algebra
//   // Why this must happen.
//   graph @double_negation(%x: f32[4]) { ... }
//   // ---- expect          then the whole expected text
//   // ---- unchanged       the transformation must give the same graph
//   // ---- same-as @other  it must give the graph that @other of this file becomes
//   // ---- error: text     it must fail with exactly this message
//
// A file holds one RUN line and any number of such cases. LAZY_UPDATE_GOLDENS=1 rewrites what is
// expected; read the diff.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/graph.h"

namespace torch_lazy::ir {

// What the RUN line's text makes of a graph.
using GoldenRun = std::function<absl::StatusOr<std::string>(absl::string_view run, const Graph& graph)>;

// Registers a test for each graph in the *.lir files below `folder`, named after its path and
// graph. An expected text that parses as a graph is compared in its canonical form, so parameters
// may have speaking names; any other, to the letter.
void RegisterGoldens(const std::string& folder, const GoldenRun& run);

}  // namespace torch_lazy::ir
