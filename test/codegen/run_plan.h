// SPDX-License-Identifier: Apache-2.0
// Compiles a graph, runs it on the backend and compares it with the reference evaluator.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "codegen/compile.h"
#include "ir/evaluate.h"
#include "ir/graph.h"

namespace torch_lazy::codegen {

// For the backend in use.
CompileOptions OptionsFor(std::vector<int64_t> seen_extents);

// The outputs of the plan on the backend in use. Calls are done by `inputs.call`. Parameters that
// the graph updates are found updated in `inputs->params`.
std::vector<ir::HostValue> RunPlan(const ir::Graph& graph, const Plan& plan, ir::EvaluateInputs* inputs);

// Fails the test where the two differ: floats by more than `ulps` units in the last place of
// `dtype`, or of what a sum of this size can lose.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
};
void ExpectClose(const ir::HostValue& actual, const ir::HostValue& expected, Tolerance tolerance,
                 const std::string& what);

using CallFunction = decltype(ir::EvaluateInputs::call);

// Sizes for which a plan shares out sums and streams results.
inline std::vector<int64_t> LargeExtents() { return std::vector<int64_t>(16, 3000); }

// Compile(graph), for unknown and for large sizes, on the backend against Evaluate(graph), with random parameters and
// the given sizes.
void CheckGraph(const ir::Graph& graph, const std::vector<std::vector<int64_t>>& symbols, Tolerance tolerance,
                uint32_t seed = 1, const CallFunction& call = nullptr);
void CheckText(absl::string_view text, const std::vector<std::vector<int64_t>>& symbols, Tolerance tolerance = {});

// The same for the plan that these sizes get.
void CheckGraphFor(const std::vector<int64_t>& seen_extents, const ir::Graph& graph,
                   const std::vector<std::vector<int64_t>>& symbols, Tolerance tolerance, uint32_t seed = 1,
                   const CallFunction& call = nullptr);
void CheckTextFor(const std::vector<int64_t>& seen_extents, absl::string_view text,
                  const std::vector<std::vector<int64_t>>& symbols, Tolerance tolerance = {});

Plan PlanOf(absl::string_view text, std::vector<int64_t> seen_extents = {});

// Whether a text of the plan's kernels has the words.
bool HasText(const Plan& plan, absl::string_view words);

ir::EvaluateInputs RandomInputs(const ir::Graph& graph, const std::vector<int64_t>& symbols, uint32_t seed);

}  // namespace torch_lazy::codegen
