// SPDX-License-Identifier: Apache-2.0
#include "codegen/layout/concats.h"

#include <algorithm>

namespace torch_lazy::codegen {
namespace {

// How often each value is wanted as a buffer that begins and ends with it.
std::vector<int> CountWholeUses(const ir::Graph& graph) {
  std::vector<int> uses(graph.nodes.size(), 0);
  for (size_t v = 0; v < graph.nodes.size(); ++v) {
    const ir::Node& node = graph.nodes[v];
    if (node.op == ir::Op::kParam || node.op == ir::Op::kPut || ir::Info(node.op).kind == ir::Kind::kCall) ++uses[v];
    if (node.op == ir::Op::kPut) ++uses[node.inputs[0]];
    if (ir::HasBias(node)) ++uses[v];  // libraries add a bias to rows that follow each other
    if (node.op == ir::Op::kReshape || node.op == ir::Op::kCall) {
      for (const ir::Value input : node.inputs) ++uses[input];
    }
  }
  for (const ir::Output& output : graph.outputs) ++uses[output.value];
  return uses;
}

}  // namespace

Concats PlaceOperands(const ir::Graph& graph, const Factors& factors) {
  Concats concats;
  concats.place_of.resize(graph.nodes.size());
  const std::vector<int> whole_uses = CountWholeUses(graph);
  for (ir::Value v = 0; v < static_cast<ir::Value>(graph.nodes.size()); ++v) {
    const ir::Node& node = graph.node(v);
    if (ir::Info(node.op).kind != ir::Kind::kConcat) continue;
    Polynomial start;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const ir::Value operand = node.inputs[k];
      if (whole_uses[operand] > 0 || concats.IsPlaced(operand)) {
        concats.missing_copies.operands.emplace_back(v, static_cast<int>(k));
      } else {
        concats.place_of[operand] = {v, start};
      }
      const bool is_stack = node.op == ir::Op::kStack;
      start += is_stack ? Polynomial(1) : Polynomial(factors.SizeOf(graph.type(operand).dims[node.attrs.dim]));
    }
  }
  return concats;
}

Affine AddressIn(const ir::Graph& graph, const Concats& concats, ir::Value value, IndexMap map,
                 const Factors& factors) {
  while (concats.IsPlaced(value)) {
    const Concats::Place& place = concats.place_of[value];
    const ir::Node& whole = graph.node(place.whole);
    if (whole.op == ir::Op::kStack) map.insert(map.begin() + whole.attrs.dim, Affine());
    map[whole.attrs.dim].offset += place.start;
    value = place.whole;
  }
  return Linearize(map, graph.type(value).dims, factors);
}

void ForEachPart(const ir::Graph& graph, ir::Value value, const std::function<void(ir::Value)>& run) {
  if (ir::Info(graph.node(value).op).kind != ir::Kind::kConcat) return run(value);
  for (const ir::Value part : graph.node(value).inputs) ForEachPart(graph, part, run);
}

}  // namespace torch_lazy::codegen
