// SPDX-License-Identifier: Apache-2.0
#include "codegen/layout/index_map.h"

#include <algorithm>

#include "base/check.h"

namespace torch_lazy::codegen {
namespace {

Polynomial SizeOf(ir::Extent extent, const Factors& factors) { return factors.SizeOf(extent); }

// How to split the index of a flat block into indices of `dims`: each variable belongs to the dim
// whose stride divides its coefficient and whose extent has room for its range.
std::optional<IndexMap> Split(const Affine& flat, absl::Span<const ir::Extent> dims, absl::Span<const Monomial> extents,
                              const Factors& factors) {
  IndexMap map(dims.size());
  if (dims.size() == 1) {
    map[0] = flat;
    return map;
  }
  if (!flat.offset.is_zero()) return std::nullopt;
  std::vector<Monomial> strides(dims.size());
  for (int k = static_cast<int>(dims.size()) - 2; k >= 0; --k)
    strides[k] = strides[k + 1] * factors.SizeOf(dims[k + 1]);
  for (const Affine::Term& term : flat.terms) {
    const Monomial* const coefficient = term.coefficient.single();
    if (coefficient == nullptr) return std::nullopt;
    bool placed = false;
    for (size_t k = 0; k < dims.size() && !placed; ++k) {
      const std::optional<Monomial> step = Divide(*coefficient, strides[k]);
      if (!step.has_value()) continue;
      if (!Divide(factors.SizeOf(dims[k]), *step * extents[term.variable]).has_value()) continue;
      map[k].Add(term.variable, *step);
      placed = true;
    }
    if (!placed) return std::nullopt;
  }
  return map;
}

// Dims of a reshape's two sides, cut into the smallest blocks with equal products; extents 1 are in
// no block.
struct Block {
  absl::InlinedVector<int, 4> result_dims;
  absl::InlinedVector<int, 4> input_dims;
};

std::vector<Block> MatchBlocks(const ir::Dims& result, const ir::Dims& input, const Factors& factors) {
  std::vector<Block> blocks(1);
  Monomial result_size, input_size;  // of the last block
  size_t r = 0, i = 0;
  while (r < result.size() || i < input.size()) {
    // The side that is behind takes its next dim.
    const bool result_behind = Divide(input_size, result_size).has_value();
    if (i == input.size() || (r < result.size() && result_behind)) {
      result_size = result_size * factors.SizeOf(result[r]);
      if (!result[r].is_one()) blocks.back().result_dims.push_back(static_cast<int>(r));
      ++r;
    } else {
      input_size = input_size * factors.SizeOf(input[i]);
      if (!input[i].is_one()) blocks.back().input_dims.push_back(static_cast<int>(i));
      ++i;
    }
    if (result_size == input_size && !blocks.back().result_dims.empty()) {
      blocks.emplace_back();
      result_size.factors.clear();
      input_size.factors.clear();
      result_size.coefficient = input_size.coefficient = 1;
    }
  }
  return blocks;
}

std::optional<IndexMap> PullThroughReshape(const ir::Dims& result, const ir::Dims& input, const IndexMap& map,
                                           absl::Span<const Monomial> extents, const Factors& factors) {
  IndexMap pulled(input.size());
  for (const Block& block : MatchBlocks(result, input, factors)) {
    Affine flat;
    Polynomial stride(1);
    for (auto dim = block.result_dims.rbegin(); dim != block.result_dims.rend(); ++dim) {
      flat.AddScaled(map[*dim], stride);
      stride = stride * SizeOf(result[*dim], factors);
    }
    ir::Dims dims;
    for (const int dim : block.input_dims) dims.push_back(input[dim]);
    const std::optional<IndexMap> split = Split(flat, dims, extents, factors);
    if (!split.has_value()) return std::nullopt;
    for (size_t k = 0; k < dims.size(); ++k) pulled[block.input_dims[k]] = (*split)[k];
  }
  return pulled;
}

}  // namespace

void Affine::Add(int32_t variable, const Polynomial& coefficient) {
  if (coefficient.is_zero()) return;
  auto it = terms.begin();
  while (it != terms.end() && it->variable < variable) ++it;
  if (it == terms.end() || it->variable != variable) {
    terms.insert(it, Term{variable, coefficient});
    return;
  }
  it->coefficient += coefficient;
  if (it->coefficient.is_zero()) terms.erase(it);
}

void Affine::AddScaled(const Affine& other, const Polynomial& scale) {
  offset += other.offset * scale;
  for (const Term& term : other.terms) Add(term.variable, term.coefficient * scale);
}

Polynomial Affine::CoefficientOf(int32_t variable) const {
  for (const Term& term : terms) {
    if (term.variable == variable) return term.coefficient;
  }
  return Polynomial();
}

IndexMap IdentityMap(absl::Span<const ir::Extent> dims, const Factors& factors, int32_t first) {
  IndexMap map(dims.size());
  for (size_t k = 0; k < dims.size(); ++k) {
    const ir::Dims parts = factors.Of(dims[k]);
    Monomial stride;
    for (int p = static_cast<int>(parts.size()) - 1; p >= 0; --p) {
      map[k].Add(first + p, stride);
      stride.MultiplyBy(parts[p]);
    }
    first += static_cast<int32_t>(parts.size());
  }
  return map;
}

Affine Linearize(const IndexMap& map, absl::Span<const ir::Extent> dims, const Factors& factors) {
  LAZY_DCHECK(map.size() == dims.size());
  Affine flat;
  Monomial stride;
  for (int k = static_cast<int>(dims.size()) - 1; k >= 0; --k) {
    flat.AddScaled(map[k], stride);
    stride = stride * factors.SizeOf(dims[k]);
  }
  return flat;
}

std::optional<IndexMap> PullThroughView(const ir::Graph& graph, ir::Value view, const IndexMap& map,
                                        absl::Span<const Monomial> extents, const Factors& factors) {
  const ir::Node& node = graph.node(view);
  const ir::Dims& input = graph.type(node.inputs[0]).dims;
  if (node.op == ir::Op::kReshape) return PullThroughReshape(node.type.dims, input, map, extents, factors);
  IndexMap pulled(input.size());
  for (size_t k = 0; k < map.size(); ++k) {
    if (node.op == ir::Op::kPermute) {
      pulled[node.attrs.dims[k]] = map[k];
    } else if (node.op == ir::Op::kSlice) {
      pulled[k].offset = SizeOf(node.attrs.starts[k], factors);
      pulled[k].AddScaled(map[k], Polynomial(node.attrs.steps[k]));
    } else if (!input[k].is_one() || node.type.dims[k].is_one()) {  // expand: a grown dim is read at 0
      pulled[k] = map[k];
    }
  }
  return pulled;
}

}  // namespace torch_lazy::codegen
