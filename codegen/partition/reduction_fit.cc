// SPDX-License-Identifier: Apache-2.0
#include "codegen/partition/reduction_fit.h"

#include <algorithm>

#include "codegen/plan/seen_sizes.h"

namespace torch_lazy::codegen {
namespace {

// Fewer rows than this do not feed several threads, or a GPU's blocks, unless there is little to do
// anyway.
constexpr double kFewRows = 8;
constexpr double kLittleWork = 16384, kLittleWorkOfBlock = 65536;
constexpr double kFewColumns = 32;  // are not worth a warp that walks along them
constexpr int kMostShareSums = 4;   // in a group: they are to stay in the cache

// The loop variables (not data variables) that occur in the map, as a set of flags; nothing if data
// variables do.
std::optional<std::vector<bool>> VariablesOf(const Group& group, const IndexMap& map) {
  std::vector<bool> used(group.variables.size());
  for (const Affine& index : map) {
    for (const Affine::Term& term : index.terms) {
      if (group.variables[term.variable].kind == Variable::Kind::kData) return std::nullopt;
      used[term.variable] = true;
    }
  }
  return used;
}

bool SameFactors(const std::vector<Monomial>& extents, const ir::Dims& factors) {
  if (extents.size() != factors.size()) return false;
  for (size_t k = 0; k < extents.size(); ++k) {
    if (!(extents[k] == ProductOf({factors[k]}))) return false;
  }
  return true;
}

bool HasInner(const Group& group) {
  return std::any_of(group.variables.begin(), group.variables.end(),
                     [](const Variable& v) { return v.kind == Variable::Kind::kInner; });
}

bool Puts(const ir::Graph& graph, const Group& group) {
  return std::any_of(group.roots.begin(), group.roots.end(),
                     [&](const Group::Root& root) { return graph.node(root.value).op == ir::Op::kPut; });
}

}  // namespace

Group::Shape ReductionShape(const ir::Graph& graph, ir::Value reduction) {
  const ir::Node& node = graph.node(reduction);
  const ir::Dims& dims = graph.type(node.inputs[0]).dims;
  for (int k = static_cast<int>(dims.size()) - 1; k >= 0; --k) {
    if (dims[k].is_one()) continue;
    const bool reduced = std::count(node.attrs.dims.begin(), node.attrs.dims.end(), k) > 0;
    return reduced ? Group::Shape::kRows : Group::Shape::kColumns;
  }
  return Group::Shape::kRows;
}

ir::Dims ReducedFactors(const ir::Graph& graph, const Factors& factors, ir::Value reduction) {
  const ir::Node& node = graph.node(reduction);
  const ir::Dims& dims = graph.type(node.inputs[0]).dims;
  ir::Dims reduced;
  for (size_t k = 0; k < dims.size(); ++k) {
    if (std::count(node.attrs.dims.begin(), node.attrs.dims.end(), static_cast<int64_t>(k)) == 0) continue;
    const ir::Dims parts = factors.Of(dims[k]);
    reduced.insert(reduced.end(), parts.begin(), parts.end());
  }
  return reduced;
}

Group::Shape ShareSumShape(const ir::Graph& graph, const CompileOptions& options, ir::Value sum) {
  const ir::Node& node = graph.node(sum);
  const ir::Dims& dims = graph.type(node.inputs[0]).dims;
  if (node.attrs.dims.back() + 1 == static_cast<int64_t>(dims.size())) return Group::Shape::kRowShares;
  if (options.target == Target::kCpu) return Group::Shape::kRows;
  if (node.op != ir::Op::kShareSum || graph.type(node.inputs[0]).dtype != ir::DType::kF32)
    return Group::Shape::kColumnShares;
  const ir::Dims columns(dims.begin() + node.attrs.dims.size(), dims.end());
  return SeenSize(ProductOf(columns), options.seen_extents) < kFewColumns ? Group::Shape::kColumnShares
                                                                          : Group::Shape::kRows;
}

std::optional<IndexMap> FitShareSum(const ir::Graph& graph, const Factors& factors, const CompileOptions& options,
                                    ir::Value sum, Group& group) {
  const ir::Node& node = graph.node(sum);
  const ir::Dims& dims = graph.type(node.inputs[0]).dims;
  const size_t first = static_cast<size_t>(node.attrs.dims[0]), count = node.attrs.dims.size();
  const ir::Dims all = factors.Of(dims);
  // The variables of the reduced dims.
  const size_t begin = factors.Of(ir::Dims(dims.begin(), dims.begin() + first)).size();
  const size_t end = factors.Of(ir::Dims(dims.begin(), dims.begin() + first + count)).size();
  const Group::Shape shape = ShareSumShape(graph, options, sum);
  const bool is_map = group.shape == Group::Shape::kMap;
  if (Puts(graph, group)) return std::nullopt;
  if ((!is_map && group.shape != shape) || group.variables.size() != all.size()) return std::nullopt;
  if (shape == Group::Shape::kRows && end == all.size()) return std::nullopt;
  int share_sums = 0;
  for (const Group::Root& root : group.roots) {
    const ir::Node& other = graph.node(root.value);
    if (ir::Info(other.op).kind != ir::Kind::kPartial) continue;
    if (++share_sums == kMostShareSums || other.type.dims[0] != node.type.dims[0]) return std::nullopt;
  }
  const auto kind = [&](size_t k) {
    const bool is_inner = (begin <= k && k < end) == (shape != Group::Shape::kRows);
    return is_inner ? Variable::Kind::kInner : Variable::Kind::kOuter;
  };
  for (size_t k = 0; k < all.size(); ++k) {
    const Variable& variable = group.variables[k];
    if (variable.kind != (is_map ? Variable::Kind::kOuter : kind(k))) return std::nullopt;
    if (!(variable.extent == ProductOf({all[k]}))) return std::nullopt;
  }
  for (size_t k = 0; k < all.size(); ++k) group.variables[k].kind = kind(k);
  group.shape = shape;
  ir::Dims kept = dims;
  kept.erase(kept.begin() + first, kept.begin() + first + count);
  IndexMap map = IdentityMap(kept, factors, static_cast<int>(begin == 0 ? end : 0));
  map.insert(map.begin(), Affine());
  return map;
}

bool FitReduction(const ir::Graph& graph, const Factors& factors, const CompileOptions& options, ir::Value reduction,
                  int map, Group& group) {
  const ir::Dims reduced = ReducedFactors(graph, factors, reduction);
  if (reduced.empty()) return true;  // of one element: it is that element
  if (group.makes_shares()) return false;
  const std::optional<std::vector<bool>> used = VariablesOf(group, group.maps[map]);
  if (!used.has_value()) return false;
  const bool has_inner = HasInner(group);
  std::vector<int> lent;  // loops of the group that the result does not depend on
  std::vector<Monomial> lent_extents;
  double rows = 1, work = 1;
  for (size_t k = 0; k < group.variables.size(); ++k) {
    const Variable& variable = group.variables[k];
    if (variable.kind == Variable::Kind::kData) continue;
    const double extent = SeenSize(variable.extent, options.seen_extents);
    work *= extent;
    if ((*used)[k]) rows *= extent;
    if ((*used)[k] && variable.kind == Variable::Kind::kInner) return false;
    if ((*used)[k]) continue;
    if (has_inner && variable.kind == Variable::Kind::kOuter) return false;  // would be computed again and again
    lent.push_back(static_cast<int>(k));
    lent_extents.push_back(variable.extent);
  }
  const Group::Shape shape = ReductionShape(graph, reduction);
  // What is summed up for one of several puts is made beside others like it, before them. Where a put stores is known
  // before its row is walked along.
  const bool walks_along_put = !has_inner && !lent.empty();
  if (Puts(graph, group) && (shape != Group::Shape::kRows || walks_along_put || PutsBesideOthers(graph, group)))
    return false;
  if (!has_inner && lent.empty()) {
    for (const ir::Extent factor : reduced) {
      group.variables.push_back({Variable::Kind::kInner, ProductOf({factor})});
    }
    group.shape = shape;
    return true;
  }
  if (!SameFactors(lent_extents, reduced)) return false;
  if (has_inner) return shape == group.shape;
  if (shape != Group::Shape::kRows) return false;
  int innermost = static_cast<int>(group.variables.size()) - 1;
  while (group.variables[innermost].kind == Variable::Kind::kData) --innermost;
  if (lent.back() != innermost) return false;
  const double little = options.target == Target::kCuda ? rows * kLittleWorkOfBlock : kLittleWork;
  if (rows < kFewRows && work > little) return false;
  for (const int variable : lent) group.variables[variable].kind = Variable::Kind::kInner;
  group.shape = shape;
  return true;
}

}  // namespace torch_lazy::codegen
