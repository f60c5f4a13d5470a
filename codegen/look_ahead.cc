// SPDX-License-Identifier: Apache-2.0
#include "codegen/look_ahead.h"

#include <algorithm>

namespace torch_lazy::codegen {

LookAhead MakeLookAhead(const ir::Graph& graph) {
  constexpr int kMostOps = 1000;  // sums along a graph with many paths stay small
  LookAhead look;
  look.single_ops.assign(graph.nodes.size(), 0);
  look.reduction_behind.assign(graph.nodes.size(), ir::kNoValue);
  for (ir::Value v = 0; v < static_cast<ir::Value>(graph.nodes.size()); ++v) {
    const ir::Node& node = graph.node(v);
    const ir::Kind kind = ir::Info(node.op).kind;
    if (kind == ir::Kind::kReduce) look.reduction_behind[v] = v;
    if (kind != ir::Kind::kElementwise && kind != ir::Kind::kView) continue;
    int ops = kind == ir::Kind::kElementwise ? 1 : 0;
    for (const ir::Value input : node.inputs) {
      ops += look.single_ops[input];
      look.reduction_behind[v] = std::max(look.reduction_behind[v], look.reduction_behind[input]);
    }
    const bool is_single = std::all_of(node.type.dims.begin(), node.type.dims.end(),
                                       [](ir::Extent extent) { return extent.is_one(); });
    look.single_ops[v] = is_single ? std::min(ops, kMostOps) : 0;
  }
  return look;
}

}  // namespace torch_lazy::codegen
