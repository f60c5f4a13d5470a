// SPDX-License-Identifier: Apache-2.0
#include "codegen/partition/look_ahead.h"

#include <algorithm>

#include "codegen/layout/concats.h"

namespace torch_lazy::codegen {

namespace {

// What a view, perhaps of a view, is of.
ir::Value BaseOf(const ir::Graph& graph, ir::Value v) {
  while (ir::Info(graph.node(v).op).kind == ir::Kind::kView) v = graph.node(v).inputs[0];
  return v;
}

std::vector<bool> FindOperands(const ir::Graph& graph) {
  std::vector<bool> is_operand(graph.nodes.size());
  for (const ir::Node& node : graph.nodes) {
    const ir::Kind kind = ir::Info(node.op).kind;
    const bool takes_memory = kind == ir::Kind::kCall || kind == ir::Kind::kMatmul || kind == ir::Kind::kAttend;
    if (!takes_memory && kind != ir::Kind::kPut) continue;
    for (ir::Value input : node.inputs) {
      if (kind == ir::Kind::kPut && input != node.inputs[0]) continue;
      ForEachPart(graph, BaseOf(graph, input), [&](ir::Value part) { is_operand[part] = true; });
    }
  }
  return is_operand;
}

std::vector<bool> FindReplacements(const ir::Graph& graph) {
  std::vector<int> num_reads(graph.nodes.size(), 0);
  std::vector<ir::Value> params;
  for (ir::Value v = 0; v < static_cast<ir::Value>(graph.nodes.size()); ++v) {
    const ir::Node& node = graph.node(v);
    if (node.op == ir::Op::kParam) params.push_back(v);
    if (ir::Info(node.op).kind == ir::Kind::kView) continue;
    for (const ir::Value input : node.inputs) ++num_reads[BaseOf(graph, input)];
  }
  std::vector<bool> replaces_shared(graph.nodes.size(), false);
  for (const ir::Output& output : graph.outputs) {
    if (output.into >= 0 && num_reads[params[output.into]] > 1) replaces_shared[BaseOf(graph, output.value)] = true;
  }
  return replaces_shared;
}

// Of vectors that ops make; a cast of what lies in memory is none.
std::vector<bool> FindVectors(const ir::Graph& graph) {
  std::vector<bool> is_vector(graph.nodes.size(), false);
  const auto without_casts = [&](ir::Value v) {
    while (graph.node(v).op == ir::Op::kCast) v = graph.node(v).inputs[0];
    return v;
  };
  for (const ir::Node& sum : graph.nodes) {
    if (sum.op != ir::Op::kSum || graph.node(sum.inputs[0]).op != ir::Op::kMul) continue;
    const ir::Node& products = graph.node(sum.inputs[0]);
    const int last = products.type.rank() - 1;
    if (sum.attrs.dims != ir::Ints{last} || products.type.dims[last].is_one()) continue;
    for (const ir::Value factor : products.inputs) {
      const ir::Node& expand = graph.node(without_casts(factor));
      if (expand.op != ir::Op::kExpand || graph.type(expand.inputs[0]).dims[last].is_one()) continue;
      const ir::Value vector = BaseOf(graph, expand.inputs[0]);
      const bool is_made = ir::Info(graph.node(vector).op).kind == ir::Kind::kElementwise;
      const ir::Value source = BaseOf(graph, without_casts(vector));
      is_vector[vector] = is_made && ir::Info(graph.node(source).op).kind != ir::Kind::kLeaf;
    }
  }
  return is_vector;
}

}  // namespace

LookAhead MakeLookAhead(const ir::Graph& graph) {
  constexpr int kMostOps = 1000;  // sums along a graph with many paths stay small
  LookAhead look;
  look.is_operand = FindOperands(graph);
  look.is_vector = FindVectors(graph);
  look.replaces_shared = FindReplacements(graph);
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
    const bool is_single =
        std::all_of(node.type.dims.begin(), node.type.dims.end(), [](ir::Extent extent) { return extent.is_one(); });
    look.single_ops[v] = is_single ? std::min(ops, kMostOps) : 0;
    look.place_ops[v] = needs_memory[v] ? 0 : std::min(place_ops, kMostOps);
  }
  return look;
}

}  // namespace torch_lazy::codegen
