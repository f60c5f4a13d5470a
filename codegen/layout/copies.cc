// SPDX-License-Identifier: Apache-2.0
#include "codegen/layout/copies.h"

#include "absl/container/flat_hash_set.h"

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

bool IsCopy(const ir::Graph& graph, ir::Value value) {
  const ir::Node& node = graph.node(value);
  return node.op == ir::Op::kCast && graph.type(node.inputs[0]).dtype == node.type.dtype;
}

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

ir::Graph InsertCopies(const ir::Graph& from, const CopyPlaces& places) {
  ir::Graph to;
  to.name = from.name;
  std::vector<ir::Value> moved;  // where each node went
  const auto append_copy = [&](ir::Value value) {
    to.nodes.push_back(CopyOf(to, value));
    return static_cast<ir::Value>(to.nodes.size()) - 1;
  };
  for (size_t v = 0; v < from.nodes.size(); ++v) {
    ir::Node node = from.nodes[v];
    for (ir::Value& input : node.inputs) input = moved[input];
    for (const auto& [reader, operand] : places.operands) {
      if (reader == static_cast<ir::Value>(v)) node.inputs[operand] = append_copy(node.inputs[operand]);
    }
    to.nodes.push_back(std::move(node));
    moved.push_back(static_cast<ir::Value>(to.nodes.size()) - 1);
  }
  for (const ir::Output& output : from.outputs) to.outputs.push_back({moved[output.value], output.into});
  for (const int k : places.outputs) to.outputs[k].value = append_copy(to.outputs[k].value);
  return to;
}

}  // namespace torch_lazy::codegen
