// SPDX-License-Identifier: Apache-2.0
#include "codegen/passes/halves.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "codegen/plan/seen_sizes.h"
#include "ir/builder.h"
#include "ir/passes/passes.h"

namespace torch_lazy::codegen {
namespace {

using ir::Extent;
using ir::Op;
using ir::Value;

// Per value: kernels alone read it, perhaps as a view.
std::vector<bool> ReadByKernels(const ir::Graph& graph) {
  std::vector<bool> by_kernels(graph.nodes.size(), true);
  for (const ir::Output& output : graph.outputs) by_kernels[output.value] = false;
  for (size_t v = graph.nodes.size(); v-- > 0;) {
    const ir::Node& node = graph.nodes[v];
    const ir::Kind kind = ir::Info(node.op).kind;
    const bool computes = kind == ir::Kind::kElementwise || kind == ir::Kind::kReduce || kind == ir::Kind::kPartial;
    if (computes || (kind == ir::Kind::kView && by_kernels[v])) continue;
    for (const Value input : node.inputs) by_kernels[input] = false;
  }
  return by_kernels;
}

bool IsFunction(const ir::Node& node) {
  return ir::Info(node.op).kind == ir::Kind::kElementwise && node.inputs.size() == 1;
}

// What a value is views and functions of, one number each.
Value BaseOf(const ir::Graph& graph, Value v) {
  while (IsFunction(graph.node(v)) || ir::Info(graph.node(v).op).kind == ir::Kind::kView) v = graph.node(v).inputs[0];
  return v;
}

// Side by side in rows, or in turns where that is no loop of its own.
bool MayBeChosen(const ir::Graph& graph, const ir::Node& node, const ir::PassContext& context) {
  constexpr double kLarge = 64 << 10;  // bytes
  const ir::Type& part = graph.type(node.inputs[0]);
  if (node.op == Op::kConcat) return !part.dims[node.attrs.dim].is_one();
  return node.op == Op::kStack && (node.attrs.dim < part.rank() || SeenBytes(node.type, context.seen_extents) < kLarge);
}

bool IsOfHalves(const ir::Graph& graph, const ir::Node& node, const ir::PassContext& context) {
  if (ir::Info(node.op).kind != ir::Kind::kConcat || node.inputs.size() != 2) return false;
  const Value first = node.inputs[0], second = node.inputs[1];
  if (graph.type(first) != graph.type(second) || !MayBeChosen(graph, node, context)) return false;
  const Value base = BaseOf(graph, first);
  const bool is_number = ir::Info(graph.node(base).op).kind == ir::Kind::kLeaf && graph.node(base).op != Op::kParam;
  return first == second || (!is_number && BaseOf(graph, second) == base);
}

// A half twice, [.., 2, n, ..]. Its functions are those of what is read twice: what is chosen is one kernel's work.
Value Spread(ir::Builder* b, Value half, int dim) {
  ir::Node node = b->graph().node(half);
  ir::Dims one = node.type.dims;
  one.insert(one.begin() + dim, Extent::Constant(1));
  ir::Dims two = one;
  two[dim] = Extent::Constant(2);
  if (!IsFunction(node)) return b->Expand(b->Reshape(half, std::move(one)), std::move(two));
  node.inputs[0] = Spread(b, node.inputs[0], dim);
  node.type.dims = std::move(two);
  return b->Append(std::move(node));
}

// The concat or stack of two halves along `dim`: [.., 2, n, ..] reshaped to `dims`.
Value Choose(ir::Builder* b, Value first, Value second, int dim, const ir::Dims& dims) {
  const Value if_first = Spread(b, first, dim);
  if (first == second) return b->Reshape(if_first, dims);
  const Value if_second = Spread(b, second, dim);
  const Value place = b->Iota({ir::DType::kI64, b->dims(if_first)}, dim);
  const Value is_first = b->Binary(Op::kEq, place, b->Like(place, 0));
  return b->Reshape(b->Where(is_first, if_first, if_second), dims);
}

}  // namespace

ir::Graph ChooseHalves(const ir::Graph& graph, ir::PassContext* context) {
  const std::vector<bool> by_kernels = ReadByKernels(graph);
  const auto fires = [&](Value v) { return by_kernels[v] && IsOfHalves(graph, graph.node(v), *context); };
  ir::Builder b(graph.name);
  b.Reserve(graph.nodes.size());
  std::vector<Value> now;
  bool has_fired = false;
  for (Value v = 0; v < static_cast<Value>(graph.nodes.size()); ++v) {
    ir::Node node = graph.node(v);
    b.set_origin(node.origin);
    for (Value& input : node.inputs) input = now[input];
    if (fires(v)) {
      has_fired = true;
      now.push_back(Choose(&b, node.inputs[0], node.inputs[1], static_cast<int>(node.attrs.dim), node.type.dims));
    } else {
      now.push_back(b.Append(std::move(node)));
    }
  }
  if (!has_fired) return graph;
  std::vector<ir::Output> outputs = graph.outputs;
  for (ir::Output& output : outputs) output.value = now[output.value];
  return ir::EliminateDeadCode(b.Finish(std::move(outputs)));
}

}  // namespace torch_lazy::codegen
