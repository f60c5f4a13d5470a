// SPDX-License-Identifier: Apache-2.0
#include "codegen/look_ahead.h"

#include <algorithm>

#include "codegen/concats.h"

namespace torch_lazy::codegen {

namespace {

std::vector<bool> FindOperands(const ir::Graph& graph) {
  std::vector<bool> is_operand(graph.nodes.size());
  for (const ir::Node& node : graph.nodes) {
    const ir::Kind kind = ir::Info(node.op).kind;
    if (kind != ir::Kind::kCall && kind != ir::Kind::kMatmul) continue;
    for (ir::Value input : node.inputs) {
      while (ir::Info(graph.node(input).op).kind == ir::Kind::kView)
        input = graph.node(input).inputs[0];
      ForEachPart(graph, input, [&](ir::Value part) { is_operand[part] = true; });
    }
  }
  return is_operand;
}

}  // namespace

LookAhead MakeLookAhead(const ir::Graph& graph) {
  constexpr int kMostOps = 1000;  // sums along a graph with many paths stay small
  LookAhead look;
  look.is_operand = FindOperands(graph);
  look.single_ops.assign(graph.nodes.size(), 0);
  look.place_ops.assign(graph.nodes.size(), 0);
  std::vector<bool> needs_memory(graph.nodes.size(), false);
  look.reduction_behind.assign(graph.nodes.size(), ir::kNoValue);
  for (ir::Value v = 0; v < static_cast<ir::Value>(graph.nodes.size()); ++v) {
    const ir::Node& node = graph.node(v);
    const ir::Kind kind = ir::Info(node.op).kind;
    if (kind == ir::Kind::kReduce) look.reduction_behind[v] = v;
    if (kind != ir::Kind::kElementwise && kind != ir::Kind::kView) {
      needs_memory[v] = kind != ir::Kind::kLeaf || node.op == ir::Op::kParam;
      continue;
    }
    int ops = kind == ir::Kind::kElementwise ? 1 : 0, place_ops = ops;
    for (const ir::Value input : node.inputs) {
      ops += look.single_ops[input];
      place_ops += look.place_ops[input];
      needs_memory[v] = needs_memory[v] || needs_memory[input];
      look.reduction_behind[v] = std::max(look.reduction_behind[v], look.reduction_behind[input]);
    }
    const bool is_single = std::all_of(node.type.dims.begin(), node.type.dims.end(),
                                       [](ir::Extent extent) { return extent.is_one(); });
    look.single_ops[v] = is_single ? std::min(ops, kMostOps) : 0;
    look.place_ops[v] = needs_memory[v] ? 0 : std::min(place_ops, kMostOps);
  }
  return look;
}

std::vector<ir::Value> ReadOneForOne(const ir::Graph& graph, ir::Value v) {
  constexpr size_t kMost = 16;
  std::vector<ir::Value> values = {v};
  for (size_t k = 0; k < values.size() && values.size() < kMost; ++k) {
    const ir::Node& node = graph.node(values[k]);
    if (k > 0 && ir::Info(node.op).kind != ir::Kind::kElementwise) continue;
    for (const ir::Value input : node.inputs) {
      const ir::Op op = graph.node(input).op;
      const bool is_number = ir::Info(op).kind == ir::Kind::kLeaf && op != ir::Op::kParam;
      if (op != ir::Op::kExpand && !is_number) values.push_back(input);
    }
  }
  values.erase(values.begin());
  return values;
}

}  // namespace torch_lazy::codegen
