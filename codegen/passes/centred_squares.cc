// SPDX-License-Identifier: Apache-2.0
#include "codegen/passes/centred_squares.h"

namespace torch_lazy::codegen {
namespace {

ir::Value WithoutViews(const ir::Graph& graph, ir::Value v) {
  while (graph.node(v).op == ir::Op::kReshape || graph.node(v).op == ir::Op::kCast) v = graph.node(v).inputs[0];
  return v;
}

}  // namespace

std::optional<Centred> CentredSquares(const ir::Graph& graph, const ir::Node& node) {
  const auto is = [&](ir::Value v, ir::Op op) { return graph.node(v).op == op; };
  if (node.op != ir::Op::kSum || node.type.dtype != ir::DType::kF32) return std::nullopt;
  if (!is(node.inputs[0], ir::Op::kMul)) return std::nullopt;
  const auto& factors = graph.node(node.inputs[0]).inputs;
  if (factors[0] != factors[1] || !is(factors[0], ir::Op::kSub)) return std::nullopt;
  const ir::Value x = graph.node(factors[0]).inputs[0], of_all = graph.node(factors[0]).inputs[1];
  if (!is(of_all, ir::Op::kExpand)) return std::nullopt;
  const ir::Value mean = graph.node(of_all).inputs[0];
  const ir::Dims& dims = graph.type(mean).dims;
  for (const int64_t dim : node.attrs.dims) {
    if (!dims[dim].is_one()) return std::nullopt;
  }
  const ir::Value quotient = WithoutViews(graph, mean);
  if (!is(quotient, ir::Op::kDiv)) return std::nullopt;
  // That sum has become one of shares.
  const ir::Value sum = WithoutViews(graph, graph.node(quotient).inputs[0]);
  if (!is(sum, ir::Op::kSum) || !is(graph.node(sum).inputs[0], ir::Op::kShareSum)) return std::nullopt;
  const ir::Node& shares = graph.node(graph.node(sum).inputs[0]);
  if (shares.inputs[0] != x || shares.attrs.dims != node.attrs.dims) return std::nullopt;
  return Centred{x, mean};
}

}  // namespace torch_lazy::codegen
