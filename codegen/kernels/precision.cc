// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernels/precision.h"

#include <algorithm>

#include "codegen/kernels/number_facts.h"

namespace torch_lazy::codegen {
namespace {

using ir::Op;

// An error in an operand is, of the operand's size, one in the result.
bool Carries(Op op) {
  return op == Op::kAdd || op == Op::kSub || op == Op::kMul || op == Op::kDiv || op == Op::kFma || op == Op::kNeg ||
         op == Op::kWhere;
}

// Of what the reader makes of it.
Precision NeededBy(const ir::Graph& graph, const Expression& reader, Precision of_reader, const Expression& read) {
  const Op op = graph.node(reader.node).op;
  if (reader.kind == Expression::Kind::kReduce)
    return op == Op::kSum && IsTermOfSoftmax(graph, graph.node(read.node)) ? Precision::kHalf : Precision::kFull;
  if (reader.kind != Expression::Kind::kOp) return Precision::kFull;
  if (op != Op::kCast) return Carries(op) ? of_reader : Precision::kFull;
  if (reader.dtype == ir::DType::kBF16) return Precision::kBF16;
  if (reader.dtype == ir::DType::kF16) return Precision::kHalf;
  return reader.dtype == read.dtype ? of_reader : Precision::kFull;
}

}  // namespace

std::vector<Precision> PrecisionsOf(const ir::Graph& graph, const Body& body) {
  std::vector<Precision> needed(body.expressions.size(), Precision::kBF16);
  std::vector<bool> is_read(body.expressions.size(), false);
  for (const Store& store : body.stores) needed[store.expression] = Precision::kFull;
  for (size_t e = body.expressions.size(); e-- > 0;) {
    const Expression& reader = body.expressions[e];
    if (!is_read[e]) needed[e] = Precision::kFull;  // stored, or the index of what is loaded
    for (const int read : reader.arguments) {
      is_read[read] = true;
      needed[read] = std::min(needed[read], NeededBy(graph, reader, needed[e], body.expressions[read]));
    }
  }
  for (const int data : body.data) {
    if (data >= 0) needed[data] = Precision::kFull;
  }
  return needed;
}

int ErfOfComplement(const ir::Graph& graph, const Body& body, int expression) {
  const Expression& sum = body.expressions[expression];
  if (sum.kind != Expression::Kind::kOp || graph.node(sum.node).op != Op::kAdd || sum.dtype != ir::DType::kF32)
    return -1;
  for (const int k : {0, 1}) {
    const Expression& one = body.expressions[sum.arguments[1 - k]];
    const ir::Node* number = one.kind == Expression::Kind::kNumber ? &graph.node(one.node) : nullptr;
    if (number == nullptr || number->op != Op::kConst || number->attrs.f != 1) continue;
    const int erf = sum.arguments[k];
    if (body.expressions[erf].kind != Expression::Kind::kOp || graph.node(body.expressions[erf].node).op != Op::kErf)
      continue;
    const auto reads = [&](const Expression& e) {
      return std::find(e.arguments.begin(), e.arguments.end(), erf) != e.arguments.end();
    };
    const bool is_stored = std::any_of(body.stores.begin(), body.stores.end(),
                                       [&](const Store& store) { return store.expression == erf; });
    if (!is_stored && std::count_if(body.expressions.begin(), body.expressions.end(), reads) == 1) return erf;
  }
  return -1;
}

}  // namespace torch_lazy::codegen
