// SPDX-License-Identifier: Apache-2.0
#include "ir/passes/numbers.h"

#include <algorithm>

#include "ir/attrs.h"

namespace torch_lazy::ir {

Value SingleElementOf(const Graph& graph, Value v) {
  for (;;) {
    const Node& node = graph.node(v);
    const bool is_single =
        std::all_of(node.type.dims.begin(), node.type.dims.end(), [](Extent e) { return e.is_one(); });
    const bool is_view = Info(node.op).kind == Kind::kView;
    if (is_single && (!is_view || node.type.rank() == 0)) return v;
    if (!is_view) return kNoValue;
    const Value input = node.inputs[0];
    // A slice may take the one element of a larger value.
    if (is_single && SingleElementOf(graph, input) == kNoValue) return v;
    v = input;
  }
}

const Node* ConstantOf(const Graph& graph, Value v) {
  while (Info(graph.node(v).op).kind == Kind::kView) v = graph.node(v).inputs[0];
  return graph.node(v).op == Op::kConst ? &graph.node(v) : nullptr;
}

bool IsConstant(const Graph& graph, Value v, double number) {
  const Node* constant = ConstantOf(graph, v);
  if (constant == nullptr) return false;
  if (IsFloat(constant->type.dtype)) return SameBits(constant->attrs.f, number);
  return static_cast<double>(constant->attrs.i) == number;
}

}  // namespace torch_lazy::ir
