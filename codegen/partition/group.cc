// SPDX-License-Identifier: Apache-2.0
#include "codegen/partition/group.h"

#include <algorithm>

namespace torch_lazy::codegen {
namespace {

// The operand's kept dims as the result's; its reduced dims over the inner variables, in order.
IndexMap ReductionOperandMap(const ir::Graph& graph, const Factors& factors, const Group& group, ir::Value value,
                             const IndexMap& map) {
  const ir::Node& node = graph.node(value);
  const ir::Dims& dims = graph.type(node.inputs[0]).dims;
  int inner = 0;
  while (inner < static_cast<int>(group.variables.size()) && group.variables[inner].kind != Variable::Kind::kInner) {
    ++inner;
  }
  IndexMap operand(dims.size());
  size_t kept = 0;
  for (size_t k = 0; k < dims.size(); ++k) {
    const bool reduced = std::count(node.attrs.dims.begin(), node.attrs.dims.end(), static_cast<int64_t>(k)) > 0;
    if (!reduced) operand[k] = map[kept];
    if (!reduced || node.attrs.keepdim) ++kept;
    if (!reduced) continue;
    // Inner variables follow one another among the loops, though outer ones may stand between them.
    const ir::Dims parts = factors.Of(dims[k]);
    std::vector<int> variables;
    for (size_t p = 0; p < parts.size(); ++p) {
      while (group.variables[inner].kind != Variable::Kind::kInner) ++inner;
      variables.push_back(inner++);
    }
    Monomial stride;
    for (int p = static_cast<int>(parts.size()) - 1; p >= 0; --p) {
      operand[k].Add(variables[p], stride);
      stride.MultiplyBy(parts[p]);
    }
  }
  return operand;
}

// The variables of what is summed up count the operand's reduced dims; the others are the result's.
IndexMap ShareSumOperandMap(const ir::Graph& graph, const Factors& factors, const Group& group, ir::Value value,
                            const IndexMap& map) {
  const ir::Node& node = graph.node(value);
  const ir::Dims& dims = graph.type(node.inputs[0]).dims;
  const size_t first = static_cast<size_t>(node.attrs.dims[0]), count = node.attrs.dims.size();
  const Variable::Kind kind = group.makes_shares() ? Variable::Kind::kInner : Variable::Kind::kOuter;
  std::vector<int> variables;
  for (size_t k = 0; k < group.variables.size(); ++k) {
    if (group.variables[k].kind == kind) variables.push_back(static_cast<int>(k));
  }
  IndexMap reduced =
      IdentityMap(ir::Dims(dims.begin() + first, dims.begin() + first + count), factors, 0);  // over 0, 1, ...
  for (Affine& index : reduced) {
    for (Affine::Term& term : index.terms) term.variable = variables[term.variable];
  }
  IndexMap operand(map.begin() + 1, map.end());
  operand.insert(operand.begin() + first, reduced.begin(), reduced.end());
  return operand;
}

IndexMap TakenMap(const ir::Graph& graph, const Factors& factors, Group& group, ir::Value value, int map) {
  const ir::Node& node = graph.node(value);
  const ir::Dims& dims = graph.type(node.inputs[0]).dims;
  const int variable = group.DataVariable(node.inputs[1], map, factors.SizeOf(dims[node.attrs.dim]));
  IndexMap taken(dims.size());
  for (size_t k = 0; k < dims.size(); ++k) {
    if (static_cast<int64_t>(k) == node.attrs.dim) {
      taken[k].Add(variable, 1);
    } else if (!dims[k].is_one()) {
      taken[k] = group.maps[map][k];
    }
  }
  return taken;
}

}  // namespace

IndexMap PutMap(const ir::Graph& graph, const Factors& factors, Group& group, ir::Value put, int map) {
  const ir::Node& node = graph.node(put);
  const int64_t dim = node.attrs.dim;
  const int index_map = group.Intern(IndexMap{group.maps[map][dim]});
  const int variable = group.DataVariable(node.inputs[2], index_map, factors.SizeOf(node.type.dims[dim]));
  IndexMap place = group.maps[map];
  place[dim] = Affine();
  place[dim].Add(variable, 1);
  return place;
}

bool PutAlike(const ir::Graph& graph, ir::Value put, ir::Value other) {
  const ir::Node &a = graph.node(put), &b = graph.node(other);
  return a.op == ir::Op::kPut && b.op == ir::Op::kPut && a.inputs[2] == b.inputs[2] && a.attrs.dim == b.attrs.dim &&
         graph.type(a.inputs[1]).dims == graph.type(b.inputs[1]).dims;
}

bool PutsBesideOthers(const ir::Graph& graph, const Group& group) {
  return std::any_of(group.roots.begin(), group.roots.end(), [&](const Group::Root& root) {
    if (graph.node(root.value).op != ir::Op::kPut) return false;
    for (ir::Value v = 0; v < static_cast<ir::Value>(graph.nodes.size()); ++v) {
      if (v != root.value && PutAlike(graph, root.value, v)) return true;
    }
    return false;
  });
}

int Group::Intern(const IndexMap& map) {
  const auto [it, is_new] = map_ids_.try_emplace(map, static_cast<int>(maps.size()));
  if (is_new) maps.push_back(map);
  return it->second;
}

int Group::DataVariable(ir::Value index, int map, const Monomial& extent) {
  for (size_t k = 0; k < variables.size(); ++k) {
    const Variable& variable = variables[k];
    if (variable.kind == Variable::Kind::kData && variable.index == index && variable.index_map == map &&
        variable.extent == extent) {
      return static_cast<int>(k);
    }
  }
  variables.push_back({Variable::Kind::kData, extent, index, map});
  return static_cast<int>(variables.size()) - 1;
}

std::vector<Monomial> Group::VariableExtents() const {
  std::vector<Monomial> extents;
  for (const Variable& variable : variables) extents.push_back(variable.extent);
  return extents;
}

ir::Value Partition::StoredAs(const ir::Graph& graph, ir::Value value) const {
  for (;;) {
    const ir::Node& node = graph.node(value);
    const ir::Kind kind = ir::Info(node.op).kind;
    const bool is_buffer = node.op == ir::Op::kParam || kind == ir::Kind::kConcat || kind == ir::Kind::kMatmul ||
                           kind == ir::Kind::kAttend || kind == ir::Kind::kCall;
    if (is_buffer || home[value] >= 0) return value;
    if (node.op != ir::Op::kReshape) return ir::kNoValue;
    value = node.inputs[0];
  }
}

std::optional<IndexMap> InputMap(const ir::Graph& graph, const Factors& factors, Group& group, ir::Value value,
                                 int input, int map) {
  const ir::Node& node = graph.node(value);
  switch (ir::Info(node.op).kind) {
    case ir::Kind::kView:
      return PullThroughView(graph, value, group.maps[map], group.VariableExtents(), factors);
    case ir::Kind::kReduce:
      return ReductionOperandMap(graph, factors, group, value, group.maps[map]);
    case ir::Kind::kPartial:
      return ShareSumOperandMap(graph, factors, group, value, group.maps[map]);
    case ir::Kind::kIndexed:
      if (input == 0) return TakenMap(graph, factors, group, value, map);
      return group.maps[map];
    case ir::Kind::kPut:
      if (input == 2) return IndexMap{group.maps[map][node.attrs.dim]};
      return group.maps[map];
    case ir::Kind::kElementwise:
    case ir::Kind::kLeaf:
    case ir::Kind::kConcat:
    case ir::Kind::kMatmul:
    case ir::Kind::kAttend:
    case ir::Kind::kCall:
      return group.maps[map];
  }
  return std::nullopt;
}

}  // namespace torch_lazy::codegen
