// SPDX-License-Identifier: Apache-2.0
#include "codegen/partition/value_inputs.h"

#include <algorithm>

#include "codegen/partition/op_cost.h"

namespace torch_lazy::codegen {
namespace {

constexpr size_t kMostReadersOfParam = 64;  // of a parameter: to store it saves no loads
constexpr int kMostAgain = 16;              // ops on single numbers, or on places, that each reader does again

// Made of what is not in memory yet, and smaller than that?
bool Narrows(const ir::Graph& graph, ir::Value v) {
  const ir::Node& node = graph.node(v);
  if (node.op != ir::Op::kCast || graph.node(node.inputs[0]).op == ir::Op::kParam) return false;
  return ir::SizeBytes(node.type.dtype) < ir::SizeBytes(graph.type(node.inputs[0]).dtype);
}

}  // namespace

bool IsCheap(const ir::Graph& graph, const LookAhead& look, Target target, ir::Value v, size_t num_groups) {
  const ir::Node& node = graph.node(v);
  if (look.single_ops[v] > 0) return look.single_ops[v] <= kMostAgain;
  if (ir::Info(node.op).kind != ir::Kind::kElementwise || IsCostly(node)) return false;
  if (Narrows(graph, v)) return false;
  if (look.place_ops[v] > 0) return look.place_ops[v] <= kMostAgain;
  int full = 0, params = 0;
  for (const ir::Value input : node.inputs) {
    const ir::Node& from = graph.node(input);
    const bool small = from.op == ir::Op::kExpand || ir::Info(from.op).kind == ir::Kind::kLeaf;
    if (from.op == ir::Op::kParam || !small) ++full;
    if (from.op == ir::Op::kParam) ++params;
  }
  const size_t most = target == Target::kCuda ? kMostReadersOfParam : kMostReaders;
  return full <= 1 && num_groups <= (full == params ? kMostReadersOfParam : most);
}

std::vector<ir::Value> CheapInputsOf(const ir::Graph& graph, const LookAhead& look, ir::Value v) {
  std::vector<ir::Value> values = {v}, sources;
  for (size_t k = 0; k < values.size(); ++k) {
    if (values.size() > kMostSearched) return {};
    for (const ir::Value input : graph.node(values[k]).inputs) {
      const ir::Node& node = graph.node(input);
      const ir::Kind kind = ir::Info(node.op).kind;
      const bool is_pointwise = kind == ir::Kind::kElementwise && !IsCostly(node) && !look.is_operand[input];
      if (kind == ir::Kind::kLeaf && node.op != ir::Op::kParam) continue;
      (is_pointwise || kind == ir::Kind::kView ? values : sources).push_back(input);
    }
  }
  std::sort(sources.begin(), sources.end());
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  return sources;
}

}  // namespace torch_lazy::codegen
