// SPDX-License-Identifier: Apache-2.0
// Passes and stages of the compiler by name, from text to text: what lazy_opt and goldens run.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/graph.h"

namespace torch_lazy::codegen {

// `run`: names separated by commas, in their order, as in "algebra,merge_matmuls,emit=cuda large":
//   - a pass;
//   - `optimize`, the passes of ir/ in their order, or `passes`, all of them;
//   - `partition`, the groups that become kernels, and the rules that decided; `plan`, buffers and steps; or `emit`,
//   the kernels, with short names and without the functions before them.
// "=cuda" or "=cpp" after any of the names says what all of them are for. A word after the last name says as if which
// sizes had been seen: a number, or `large`.
//
// A plan is made of the graph that the named passes have made, and those that are needed; of all passes where none is
// named. Returns what is printed: the graph, unless a plan is.
absl::StatusOr<std::string> RunStages(absl::string_view run, const ir::Graph& graph);

std::string StageNames();  // separated by commas

}  // namespace torch_lazy::codegen
