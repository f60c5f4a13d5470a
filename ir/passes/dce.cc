// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "ir/passes/passes.h"

namespace torch_lazy::ir {
namespace {

// Parameters and scalars are the graph's signature; a call without results is there for its effect,
// and one that may fail for its failure.
bool Stays(const Node& node) {
  return node.op == Op::kParam || node.op == Op::kScalar ||
         (node.op == Op::kCall && (node.attrs.inout.empty() || node.attrs.may_fail));
}

std::vector<bool> LiveNodes(const Graph& graph) {
  std::vector<bool> live(graph.nodes.size(), false);
  for (const Output& output : graph.outputs) live[output.value] = true;
  for (size_t v = graph.nodes.size(); v-- > 0;) {
    live[v] = live[v] || Stays(graph.nodes[v]);
    if (!live[v]) continue;
    for (Value input : graph.nodes[v].inputs) live[input] = true;
  }
  // What a call writes in place it writes, whether the new value is read or not: its old value may be.
  for (size_t v = 0; v < graph.nodes.size(); ++v) {
    const Node& node = graph.nodes[v];
    if (node.op != Op::kResult || !live[node.inputs[0]]) continue;
    live[v] = live[v] || graph.nodes[node.inputs[0]].attrs.inout[node.attrs.index] >= 0;
  }
  return live;
}

}  // namespace

Graph EliminateDeadCode(const Graph& graph) {
  const std::vector<bool> live = LiveNodes(graph);
  Graph result{graph.name, {}, graph.outputs};
  result.nodes.reserve(std::count(live.begin(), live.end(), true));
  std::vector<Value> new_value(graph.nodes.size(), kNoValue);
  for (size_t v = 0; v < graph.nodes.size(); ++v) {
    if (!live[v]) continue;
    new_value[v] = static_cast<Value>(result.nodes.size());
    Node& node = result.nodes.emplace_back(graph.nodes[v]);
    for (Value& input : node.inputs) input = new_value[input];
  }
  for (Output& output : result.outputs) output.value = new_value[output.value];
  return result;
}

}  // namespace torch_lazy::ir
