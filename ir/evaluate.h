// SPDX-License-Identifier: Apache-2.0
// The reference meaning of a graph: node by node over host memory.
//
// Each node's result is rounded to its dtype; sums and products are accumulated in f64 and rounded
// once. Slow and plain on purpose: kernels, passes and decompositions are tested against it.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph.h"
#include "ir/host_value.h"

namespace torch_lazy::ir {

struct EvaluateInputs {
  std::vector<HostValue> params;
  std::vector<HostValue> scalars;  // rank 0, f64 or i64
  std::vector<int64_t> symbols;    // the number of each symbol
  // Runs a call node on its operands and gives all results. Needed only if the graph has calls.
  std::function<absl::StatusOr<std::vector<HostValue>>(const Node& call, absl::Span<const HostValue> operands)> call;
};

// The graph's outputs in order. Fails where the inputs do not fit the graph, an index is out of
// range, or a call fails.
absl::StatusOr<std::vector<HostValue>> Evaluate(const Graph& graph, const EvaluateInputs& inputs);

// One node other than param, scalar and call. Fails as above.
absl::StatusOr<HostValue> EvaluateNode(const Node& node, absl::Span<const HostValue* const> operands,
                                       absl::Span<const int64_t> symbols);

}  // namespace torch_lazy::ir
