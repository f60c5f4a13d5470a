// SPDX-License-Identifier: Apache-2.0
#include "ir/decompose/pick.h"

#include <algorithm>

namespace torch_lazy::ir::decompose {
namespace {

constexpr int kMostOps = 12;  // in a row

// What is the same number all along `dim`, before it was broadcast; kNoValue if it is not.
Value SameAlong(const Graph& graph, Value v, int dim) {
  const Node& node = graph.node(v);
  if (node.op != Op::kExpand) return kNoValue;
  const Value input = node.inputs[0];
  return graph.type(input).dims[dim].is_one() ? input : kNoValue;
}

Expression Row(Builder& b, Value v, const Dims& dims, int dim) {
  Dims without = b.dims(v);
  without.erase(without.begin() + dim);
  return {b, b.BroadcastTo(b.Reshape(v, std::move(without)), dims)};
}

Expression PickFrom(const Expression& x, const Expression& hit, int dim, int depth) {
  Builder& b = x.builder();
  Dims dims = x.dims();
  dims.erase(dims.begin() + dim);
  if (const Value same = SameAlong(b.graph(), x, dim); same != kNoValue) return Row(b, same, dims, dim);
  Node node = b.graph().node(x);  // a copy: nodes are appended
  int varying = 0;
  for (const Value input : node.inputs) varying += SameAlong(b.graph(), input, dim) == kNoValue;
  if (depth < kMostOps && Info(node.op).kind == Kind::kElementwise && varying <= 1) {
    for (Value& input : node.inputs) input = PickFrom({b, input}, hit, dim, depth + 1);
    node.type.dims = dims;
    return {b, b.Append(std::move(node))};
  }
  const DType summed = IsHalf(x.dtype()) ? DType::kF32 : x.dtype();
  const Expression wide(b, b.Cast(x, summed));
  const Expression picked = Sum(Where(hit, wide, wide.Number(0)), {dim}, /*keepdim=*/false);
  return {b, b.Cast(picked, x.dtype())};
}

}  // namespace

Expression Pick(const Expression& x, const Expression& hit, int dim) { return PickFrom(x, hit, dim, 0); }

}  // namespace torch_lazy::ir::decompose
