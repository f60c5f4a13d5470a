// SPDX-License-Identifier: Apache-2.0
#include "codegen/passes/copies.h"

#include <algorithm>

namespace torch_lazy::codegen {
namespace {

ir::Node CopyOf(const ir::Graph& graph, ir::Value value) {
  ir::Node copy;
  copy.op = ir::Op::kCast;
  copy.inputs = {value};
  copy.type = graph.type(value);
  copy.origin = graph.node(value).origin;
  return copy;
}

}  // namespace

CopyPlaces SharedOutputs(const ir::Graph& graph) {
  CopyPlaces places;
  absl::flat_hash_set<ir::Value> taken;
  for (size_t k = 0; k < graph.outputs.size(); ++k) {
    const ir::Output& output = graph.outputs[k];
    ir::Value bytes = output.value;
    while (graph.node(bytes).op == ir::Op::kReshape) bytes = graph.node(bytes).inputs[0];
    const ir::Node& node = graph.node(bytes);
    const bool is_param = node.op == ir::Op::kParam;
    if (is_param && node.attrs.index == output.into) continue;
    if (is_param || !taken.insert(bytes).second) places.outputs.push_back(static_cast<int>(k));
  }
  return places;
}

GraphWithCopies InsertCopies(const GraphWithCopies& from, const CopyPlaces& places) {
  GraphWithCopies to;
  to.graph.name = from.graph.name;
  std::vector<ir::Value> moved;  // where each node went
  const auto append_copy = [&](ir::Value value) {
    to.graph.nodes.push_back(CopyOf(to.graph, value));
    const auto copy = static_cast<ir::Value>(to.graph.nodes.size()) - 1;
    to.copies.insert(copy);
    return copy;
  };
  for (size_t v = 0; v < from.graph.nodes.size(); ++v) {
    ir::Node node = from.graph.nodes[v];
    for (ir::Value& input : node.inputs) input = moved[input];
    for (const auto& [reader, operand] : places.operands) {
      if (reader == static_cast<ir::Value>(v)) node.inputs[operand] = append_copy(node.inputs[operand]);
    }
    to.graph.nodes.push_back(std::move(node));
    moved.push_back(static_cast<ir::Value>(to.graph.nodes.size()) - 1);
    if (from.copies.contains(static_cast<ir::Value>(v))) to.copies.insert(moved.back());
  }
  for (const ir::Output& output : from.graph.outputs) to.graph.outputs.push_back({moved[output.value], output.into});
  for (const int k : places.outputs) to.graph.outputs[k].value = append_copy(to.graph.outputs[k].value);
  return to;
}

}  // namespace torch_lazy::codegen
