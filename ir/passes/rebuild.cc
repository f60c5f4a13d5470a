// SPDX-License-Identifier: Apache-2.0
#include "ir/passes/rebuild.h"

#include <utility>
#include <vector>

namespace torch_lazy::ir {

Graph Rebuild(const Graph& graph, absl::FunctionRef<Value(Builder&, const Node&)> rewrite) {
  Builder b(graph.name);
  b.Reserve(graph.nodes.size());
  std::vector<Value> new_value;
  new_value.reserve(graph.nodes.size());
  for (const Node& old_node : graph.nodes) {
    Node node = old_node;
    for (Value& input : node.inputs) input = new_value[input];
    b.set_origin(node.origin);
    const Value value = rewrite(b, node);
    new_value.push_back(value == kNoValue ? b.Append(std::move(node)) : value);
  }
  std::vector<Output> outputs = graph.outputs;
  for (Output& output : outputs) output.value = new_value[output.value];
  return b.Finish(std::move(outputs));
}

}  // namespace torch_lazy::ir
