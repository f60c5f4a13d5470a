// SPDX-License-Identifier: Apache-2.0
#include "codegen/layout/factors.h"

#include <algorithm>

namespace torch_lazy::codegen {

Factors::Factors(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes) {
    if (node.op == ir::Op::kReshape) Learn(Of(graph.type(node.inputs[0]).dims), Of(node.type.dims));
  }
}

ir::Dims Factors::Of(ir::Extent extent) const {
  if (extent.is_one()) return {};
  const auto found = known_.find(extent);
  return found == known_.end() ? ir::Dims{extent} : Of(found->second);
}

ir::Dims Factors::Of(absl::Span<const ir::Extent> dims) const {
  ir::Dims factors;
  for (const ir::Extent extent : dims) {
    const ir::Dims more = Of(extent);
    factors.insert(factors.end(), more.begin(), more.end());
  }
  return factors;
}

void Factors::Learn(ir::Dims from, ir::Dims to) {
  const ir::Extent zero = ir::Extent::Constant(0);
  if (std::count(from.begin(), from.end(), zero) > 0 || std::count(to.begin(), to.end(), zero) > 0) return;
  for (auto it = from.begin(); it != from.end();) {
    const auto same = std::find(to.begin(), to.end(), *it);
    if (same == to.end()) {
      ++it;
      continue;
    }
    to.erase(same);
    it = from.erase(it);
  }
  if (from.empty() || to.empty()) return;
  // The extent that came later is written by the earlier ones.
  if (to.size() == 1 && !(from.size() == 1 && from[0].is_symbol() && !to[0].is_symbol())) {
    known_[to[0]] = from;
  } else if (from.size() == 1) {
    known_[from[0]] = to;
  }
}

}  // namespace torch_lazy::codegen
