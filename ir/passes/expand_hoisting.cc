// SPDX-License-Identifier: Apache-2.0
//
// exp(expand x) is expand(exp x): each number is computed once instead of once for every place it
// is broadcast to, and so is a cast of what is chosen among such. What optimizers compute from their scalars (a bias
// correction, say) so becomes work on single numbers.
#include <algorithm>
#include <utility>

#include "ir/passes/numbers.h"
#include "ir/passes/passes.h"
#include "ir/passes/rebuild.h"

namespace torch_lazy::ir {
namespace {

Value Apply(Builder& b, const Node& node, absl::InlinedVector<Value, 3> inputs) {
  Dims dims = b.dims(inputs[0]);
  return b.Append(Node{
      .op = node.op, .inputs = std::move(inputs), .type = {node.type.dtype, std::move(dims)}, .attrs = node.attrs});
}

// All operands are one number each: the op is done on rank 0.
Value OnNumbers(Builder& b, const Node& node) {
  absl::InlinedVector<Value, 3> numbers;
  for (Value input : node.inputs) numbers.push_back(SingleElementOf(b.graph(), input));
  if (std::find(numbers.begin(), numbers.end(), kNoValue) != numbers.end()) return kNoValue;
  for (Value& number : numbers) number = b.Reshape(number, {});
  return b.BroadcastTo(Apply(b, node, std::move(numbers)), node.type.dims);
}

// All operands are expands, and some dim is 1 in all of them before.
Value BeforeExpands(Builder& b, const Node& node) {
  Dims before(node.type.dims.size(), Extent::Constant(1));
  for (Value input : node.inputs) {
    const Node& maker = b.graph().node(input);
    if (maker.op != Op::kExpand) return kNoValue;
    const Dims& narrow = b.dims(maker.inputs[0]);
    for (size_t k = 0; k < narrow.size(); ++k) {
      if (!narrow[k].is_one()) before[k] = narrow[k];
    }
  }
  if (before == node.type.dims) return kNoValue;
  absl::InlinedVector<Value, 3> inputs;
  for (Value input : node.inputs) inputs.push_back(b.Expand(b.graph().node(input).inputs[0], before));
  return b.Expand(Apply(b, node, std::move(inputs)), node.type.dims);
}

// A cast of a choice between expands is a choice between casts of what they expand.
Value CastOfChoice(Builder& b, const Node& node) {
  if (node.op != Op::kCast) return kNoValue;
  const Node choice = b.graph().node(node.inputs[0]);
  if (choice.op != Op::kWhere) return kNoValue;
  const auto narrow = [&](Value value) {
    const Node& maker = b.graph().node(value);
    return maker.op == Op::kExpand ? maker.inputs[0] : kNoValue;
  };
  const Value yes = narrow(choice.inputs[1]), no = narrow(choice.inputs[2]);
  if (yes == kNoValue || no == kNoValue) return kNoValue;
  const auto cast = [&](Value value) { return b.Expand(b.Cast(value, node.type.dtype), node.type.dims); };
  return b.Where(choice.inputs[0], cast(yes), cast(no));
}

Value HoistExpand(Builder& b, const Node& node) {
  const Dims& dims = node.type.dims;
  const bool is_wide = std::any_of(dims.begin(), dims.end(), [](Extent e) { return !e.is_one(); });
  if (Info(node.op).kind != Kind::kElementwise || !is_wide) return kNoValue;
  const Value number = OnNumbers(b, node);
  if (number != kNoValue) return number;
  const Value choice = CastOfChoice(b, node);
  return choice != kNoValue ? choice : BeforeExpands(b, node);
}

}  // namespace

Graph HoistExpands(const Graph& graph) { return Rebuild(graph, HoistExpand); }

}  // namespace torch_lazy::ir
