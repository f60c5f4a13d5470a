// SPDX-License-Identifier: Apache-2.0
#include "codegen/partition/group_loops.h"

#include <algorithm>

#include "codegen/partition/reduction_fit.h"

namespace torch_lazy::codegen {
namespace {

bool SameExtents(const Group& group, Variable::Kind kind, const ir::Dims& factors) {
  size_t k = 0;
  for (const Variable& variable : group.variables) {
    if (variable.kind != kind) continue;
    if (k == factors.size() || !(variable.extent == ProductOf({factors[k]}))) return false;
    ++k;
  }
  return k == factors.size();
}

// How many variables of a kind there are, and how many of these are used.
struct Usage {
  int all = 0, used = 0;
  bool complete() const { return used == all; }
};

Usage UsageOf(const Group& group, Variable::Kind kind, const std::vector<bool>& used) {
  Usage usage;
  for (size_t k = 0; k < group.variables.size(); ++k) {
    if (group.variables[k].kind != kind) continue;
    ++usage.all;
    if (used[k]) ++usage.used;
  }
  return usage;
}

}  // namespace

bool MeetsEachOnce(const Group& group, const IndexMap& map, const ir::Dims& dims, const Factors& factors) {
  const Affine address = Linearize(map, dims, factors);
  if (!address.offset.is_zero()) return false;
  std::vector<bool> used(group.variables.size());
  Monomial reached;  // the elements 0 .. reached - 1 are met by the variables used so far
  for (size_t n = 0; n < address.terms.size(); ++n) {
    const auto next = std::find_if(address.terms.begin(), address.terms.end(), [&](const Affine::Term& term) {
      return !used[term.variable] && term.coefficient == Polynomial(reached);
    });
    if (next == address.terms.end()) return false;
    used[next->variable] = true;
    reached = reached * group.variables[next->variable].extent;
  }
  if (!(reached == ProductOf(factors.Of(dims)))) return false;
  const Usage inner = UsageOf(group, Variable::Kind::kInner, used);
  return UsageOf(group, Variable::Kind::kOuter, used).complete() && (inner.used == 0 || inner.complete()) &&
         UsageOf(group, Variable::Kind::kData, used).used == 0;
}

bool IsRepeated(const Group& group, const IndexMap& map) {
  std::vector<bool> used(group.variables.size());
  for (const Affine& index : map) {
    for (const Affine::Term& term : index.terms) used[term.variable] = true;
  }
  const Usage outer = UsageOf(group, Variable::Kind::kOuter, used);
  const Usage inner = UsageOf(group, Variable::Kind::kInner, used);
  if (UsageOf(group, Variable::Kind::kData, used).used > 0) return false;
  if (inner.used > 0) return !outer.complete() || !inner.complete();
  return outer.used > 0 && !outer.complete() && inner.all == 0;
}

bool IsReadByShares(const Group& group, const IndexMap& map) {
  const auto is_inner = [&](const Affine::Term& term) {
    return group.variables[term.variable].kind == Variable::Kind::kInner;
  };
  return group.makes_shares() && std::none_of(map.begin(), map.end(), [&](const Affine& index) {
           return std::any_of(index.terms.begin(), index.terms.end(), is_inner);
         });
}

std::optional<IndexMap> MapOverSameLoops(const ir::Graph& graph, const Factors& factors, ir::Value value,
                                         const Group& group) {
  const ir::Node& node = graph.node(value);
  const bool is_reduction = ir::Info(node.op).kind == ir::Kind::kReduce;
  if (is_reduction) {
    if (group.shape != ReductionShape(graph, value)) return std::nullopt;
    if (!SameExtents(group, Variable::Kind::kInner, ReducedFactors(graph, factors, value))) return std::nullopt;
  } else if (group.makes_shares()) {
    return std::nullopt;
  }
  if (!SameExtents(group, Variable::Kind::kOuter, factors.Of(node.type.dims))) return std::nullopt;
  std::vector<int> outer;
  for (size_t k = 0; k < group.variables.size(); ++k) {
    if (group.variables[k].kind == Variable::Kind::kOuter) outer.push_back(static_cast<int>(k));
  }
  IndexMap map = IdentityMap(node.type.dims, factors, 0);
  for (Affine& index : map) {
    for (Affine::Term& term : index.terms) term.variable = outer[term.variable];
  }
  return map;
}

}  // namespace torch_lazy::codegen
