// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernels/number_facts.h"

#include "ir/passes/numbers.h"
#include "ir/round.h"

namespace torch_lazy::codegen {
namespace {

using ir::DType;
using ir::Op;

bool IsExact(DType dtype, const ir::Graph& graph, ir::Value v, int depth) {
  constexpr int kMostDepth = 6;
  const ir::Node& node = graph.node(v);
  if (node.type.dtype == dtype) return true;
  if (depth == kMostDepth || !ir::IsFloat(node.type.dtype) || ir::IsHalf(node.type.dtype)) return false;
  if (node.op == Op::kConst) return ir::RoundTo(dtype, node.attrs.f) == node.attrs.f;
  if (!ChoosesOnly(node.op) && node.op != Op::kCast && ir::Info(node.op).kind != ir::Kind::kView) return false;
  for (size_t k = node.op == Op::kWhere ? 1 : 0; k < node.inputs.size(); ++k) {
    if (!IsExact(dtype, graph, node.inputs[k], depth + 1)) return false;
  }
  return true;
}

// x - max(x), along whatever dims.
bool IsBelowLargest(const ir::Graph& graph, const ir::Node& node) {
  if (node.op != Op::kSub || graph.node(node.inputs[1]).op != Op::kExpand) return false;
  const ir::Node& largest = graph.node(graph.node(node.inputs[1]).inputs[0]);
  const bool is_largest = largest.op == Op::kReduceMax || largest.op == Op::kReduceMaxNumber;
  return is_largest && largest.attrs.keepdim && largest.inputs[0] == node.inputs[0];
}

}  // namespace

bool ChoosesOnly(Op op) {
  return op == Op::kWhere || op == Op::kNeg || op == Op::kAbs || op == Op::kMax || op == Op::kMin;
}

bool IsExactIn(DType dtype, const ir::Graph& graph, ir::Value v) { return IsExact(dtype, graph, v, 0); }

bool IsNonPositive(const ir::Graph& graph, ir::Value v) {
  const ir::Node& node = graph.node(v);
  const auto is_square = [&](ir::Value x) {
    const ir::Node& product = graph.node(x);
    return product.op == Op::kMul && product.inputs[0] == product.inputs[1];
  };
  if (node.op == Op::kNeg) return is_square(node.inputs[0]);
  if (node.op == Op::kMul) {
    for (const int k : {0, 1}) {
      const ir::Node* number = ir::ConstantOf(graph, node.inputs[k]);
      if (number != nullptr && number->attrs.f <= 0 && is_square(node.inputs[1 - k])) return true;
    }
  }
  return IsBelowLargest(graph, node);
}

bool IsTermOfSoftmax(const ir::Graph& graph, const ir::Node& node) {
  return node.op == Op::kExp && IsBelowLargest(graph, graph.node(node.inputs[0]));
}

}  // namespace torch_lazy::codegen
