// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "ir/passes/passes.h"
#include "ir/passes/rebuild.h"

namespace torch_lazy::ir {
namespace {

bool Commutes(const Node& node) { return (Info(node.op).traits & kCommutes) != 0; }

// Nodes by address: those of a graph that does not change while they are here.
struct NodeHash {
  size_t operator()(const Node* node) const {
    Value first = node->inputs.empty() ? kNoValue : node->inputs[0];
    Value second = node->inputs.size() < 2 ? kNoValue : node->inputs[1];
    if (Commutes(*node) && first > second) std::swap(first, second);
    const Attrs& a = node->attrs;
    return absl::HashOf(node->op, node->type.dtype, node->type.dims, first, second, a.index, a.dim, a.dims, a.extent,
                        std::bit_cast<uint64_t>(a.f), a.i);
  }
};

// The same node up to the order of operands that may be swapped.
struct NodeEqual {
  bool operator()(const Node* a, const Node* b) const {
    if (*a == *b) return true;
    return a->op == b->op && Commutes(*a) && a->inputs[0] == b->inputs[1] && a->inputs[1] == b->inputs[0] &&
           a->type == b->type && a->attrs == b->attrs;
  }
};

bool IsUnique(const Node& node) { return node.op == Op::kParam || node.op == Op::kScalar || node.op == Op::kCall; }

}  // namespace

Graph EliminateCommonSubexpressions(const Graph& graph) {
  Graph result{graph.name, {}, graph.outputs};
  result.nodes.reserve(graph.nodes.size());  // addresses stay, since none is added beyond
  std::vector<Value> new_value;
  new_value.reserve(graph.nodes.size());
  absl::flat_hash_map<const Node*, Value, NodeHash, NodeEqual> seen;
  seen.reserve(graph.nodes.size());
  for (const Node& old_node : graph.nodes) {
    const Value next = static_cast<Value>(result.nodes.size());
    Node& node = result.nodes.emplace_back(old_node);
    for (Value& input : node.inputs) input = new_value[input];
    const auto [found, is_new] = IsUnique(node) ? std::pair{seen.end(), true} : seen.emplace(&node, next);
    new_value.push_back(is_new ? next : found->second);
    if (!is_new) result.nodes.pop_back();
  }
  for (Output& output : result.outputs) output.value = new_value[output.value];
  return result;
}

}  // namespace torch_lazy::ir
