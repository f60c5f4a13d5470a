// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include "ir/passes/numbers.h"
#include "ir/passes/passes.h"
#include "ir/passes/rebuild.h"

namespace torch_lazy::ir {
namespace {

const Node* MakerIf(const Builder& b, Value v, Op op) {
  const Node& node = b.graph().node(v);
  return node.op == op ? &node : nullptr;
}

// Rows of ones do not move elements: a permutation that keeps the order of the other dims is a
// reshape.
bool MovesOnlyOnes(const Node& permute, const Dims& input) {
  int64_t last = -1;
  for (int64_t dim : permute.attrs.dims) {
    if (input[dim].is_one()) continue;
    if (dim < last) return false;
    last = dim;
  }
  return true;
}

Value ComposeReshape(Builder& b, Value x, const Dims& dims) {
  if (const Node* inner = MakerIf(b, x, Op::kReshape)) x = inner->inputs[0];
  return b.Reshape(x, dims);
}

Value ComposePermute(Builder& b, Value x, const Node& node) {
  if (MovesOnlyOnes(node, b.dims(x))) return ComposeReshape(b, x, node.type.dims);
  const Node* inner = MakerIf(b, x, Op::kPermute);
  if (inner == nullptr) return kNoValue;
  Ints dims;
  for (int64_t dim : node.attrs.dims) dims.push_back(inner->attrs.dims[dim]);
  return b.Permute(inner->inputs[0], std::move(dims));
}

Value ComposeExpand(Builder& b, Value x, const Node& node) {
  if (const Node* inner = MakerIf(b, x, Op::kExpand)) x = inner->inputs[0];
  return b.Expand(x, node.type.dims);
}

// Element k of the outer slice is element outer + k * step of the inner one. Starts are single
// extents, so a sum or product of symbols cannot be said.
std::optional<Extent> ComposedStart(Extent inner, int64_t inner_step, Extent outer) {
  if (outer == Extent::Constant(0)) return inner;
  if (inner == Extent::Constant(0) && inner_step == 1) return outer;
  if (inner.is_symbol() || outer.is_symbol()) return std::nullopt;
  return Extent::Constant(inner.constant() + inner_step * outer.constant());
}

// Where indices start, `size` of them `step` apart, in the part of a concat that is [begin, begin +
// extent) of it; nothing if not all are seen to lie there.
std::optional<Extent> StartInPart(Extent start, Extent size, int64_t step, Extent begin, Extent extent) {
  if (start == begin && size == extent && step == 1) return Extent::Constant(0);
  if (!start.is_constant() || !size.is_constant() || !begin.is_constant() || !extent.is_constant()) return std::nullopt;
  const int64_t first = start.constant() - begin.constant();
  const int64_t last = first + (size.constant() - 1) * step;
  if (size.constant() == 0 || std::min(first, last) < 0 || std::max(first, last) >= extent.constant())
    return std::nullopt;
  return Extent::Constant(first);
}

// A slice within one part of a concat is a slice of that part; kNoValue if it is not seen to be.
Value SliceOfPart(Builder& b, Value x, const Node& node) {
  const Node* concat = MakerIf(b, x, Op::kConcat);
  if (concat == nullptr) return kNoValue;
  const int64_t dim = concat->attrs.dim;
  Extent begin = Extent::Constant(0);
  for (const Value part : concat->inputs) {
    const Extent extent = b.dims(part)[dim];
    const std::optional<Extent> start =
        StartInPart(node.attrs.starts[dim], node.type.dims[dim], node.attrs.steps[dim], begin, extent);
    if (start.has_value()) {
      Dims starts = node.attrs.starts;
      starts[dim] = *start;
      return b.Slice(part, std::move(starts), node.type.dims, node.attrs.steps);
    }
    const std::optional<Extent> end = ComposedStart(begin, 1, extent);
    if (!end.has_value()) return kNoValue;
    begin = *end;
  }
  return kNoValue;
}

Value ComposeSlice(Builder& b, Value x, const Node& node) {
  const Value of_part = SliceOfPart(b, x, node);
  if (of_part != kNoValue) return of_part;
  const Value same = b.Slice(x, node.attrs.starts, node.type.dims, node.attrs.steps);
  if (same == x) return x;
  const Node* inner = MakerIf(b, x, Op::kSlice);
  if (inner == nullptr) return same;
  Dims starts;
  Ints steps;
  for (size_t k = 0; k < node.attrs.steps.size(); ++k) {
    const std::optional<Extent> start =
        ComposedStart(inner->attrs.starts[k], inner->attrs.steps[k], node.attrs.starts[k]);
    if (!start.has_value()) return same;
    starts.push_back(*start);
    steps.push_back(inner->attrs.steps[k] * node.attrs.steps[k]);
  }
  return b.Slice(inner->inputs[0], std::move(starts), node.type.dims, std::move(steps));
}

// [1, 1] -> [4, 8] -> any view: all elements are the one number.
Value ViewOfNumber(Builder& b, Value x, const Dims& dims) {
  const Value number = SingleElementOf(b.graph(), x);
  if (number == kNoValue) return kNoValue;
  if (b.dims(number) == dims) return number;
  return b.Expand(ComposeReshape(b, number, Dims(dims.size(), Extent::Constant(1))), dims);
}

Value Compose(Builder& b, const Node& node) {
  if (Info(node.op).kind != Kind::kView) return kNoValue;
  const Value x = node.inputs[0];
  const Value number = ViewOfNumber(b, x, node.type.dims);
  if (number != kNoValue) return number;
  if (node.op == Op::kReshape) return ComposeReshape(b, x, node.type.dims);
  if (node.op == Op::kPermute) return ComposePermute(b, x, node);
  if (node.op == Op::kExpand) return ComposeExpand(b, x, node);
  return ComposeSlice(b, x, node);
}

}  // namespace

Graph ComposeViews(const Graph& graph) { return Rebuild(graph, Compose); }

}  // namespace torch_lazy::ir
