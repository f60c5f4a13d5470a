// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ir/evaluate.h"
#include "ir/passes/numbers.h"
#include "ir/passes/passes.h"
#include "ir/passes/rebuild.h"

namespace torch_lazy::ir {
namespace {

bool DividesByZero(const Node& node, const std::vector<HostValue>& operands) {
  const bool divides =
      node.op == Op::kFloorDiv || node.op == Op::kTruncDiv || node.op == Op::kFmod || node.op == Op::kRemainder;
  return divides && !IsFloat(node.type.dtype) && operands[1].integers[0] == 0;
}

Value Fold(Builder& b, const Node& node) {
  if (Info(node.op).kind != Kind::kElementwise) return kNoValue;
  std::vector<HostValue> operands;
  std::vector<const HostValue*> pointers;
  for (Value input : node.inputs) {
    const Node* constant = ConstantOf(b.graph(), input);
    if (constant == nullptr) return kNoValue;
    operands.push_back(*EvaluateNode(*constant, {}, {}));
  }
  // What an integer division by zero does is the kernel's business.
  if (DividesByZero(node, operands)) return kNoValue;
  for (const HostValue& operand : operands) pointers.push_back(&operand);
  Node on_numbers = node;
  on_numbers.type.dims.clear();
  const HostValue value = *EvaluateNode(on_numbers, pointers, {});
  const DType dtype = value.dtype;
  const Value constant = IsFloat(dtype) ? b.Const(dtype, value.floats[0]) : b.Const(dtype, value.integers[0]);
  return b.Full(constant, node.type.dims);
}

}  // namespace

Graph FoldConstants(const Graph& graph) { return Rebuild(graph, Fold); }

}  // namespace torch_lazy::ir
