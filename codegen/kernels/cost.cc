// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernels/cost.h"

#include "codegen/partition/op_cost.h"
#include "codegen/plan/seen_sizes.h"

namespace torch_lazy::codegen {
namespace {

constexpr double kByte = 0.08;      // memory at 12 bytes a nanosecond
constexpr double kScattered = 1.0;  // a load at an index that is data
constexpr double kIteration = 0.1;

}  // namespace

KernelCost CostOf(const ir::Graph& graph, const Body& body, const CompileOptions& options) {
  double outer = 1, inner = 1;
  for (const Variable& variable : body.variables) {
    const double extent = SeenSize(variable.extent, options.seen_extents);
    if (variable.kind == Variable::Kind::kOuter) outer *= extent;
    if (variable.kind == Variable::Kind::kInner) inner *= extent;
  }
  double cost = kIteration;
  for (size_t k = 0; k < body.expressions.size(); ++k) {
    const Expression& e = body.expressions[k];
    if (e.uses == 0) continue;
    double each = 0;
    if (e.kind == Expression::Kind::kLoad) {
      each = kByte * static_cast<double>(ir::SizeBytes(e.dtype));
      for (const Affine::Term& term : body.addresses[e.address].index.terms) {
        if (body.variables[term.variable].kind == Variable::Kind::kData) each = kScattered;
      }
    } else if (e.kind == Expression::Kind::kOp) {
      each = NanosecondsOf(graph.node(e.node));
    }
    const bool along_row = body.uses_inner(static_cast<int>(k)) || e.kind == Expression::Kind::kReduce;
    cost += along_row ? each * inner : each;
  }
  for (const Store& store : body.stores) {
    const Expression& e = body.expressions[store.expression];
    const double each = kByte * static_cast<double>(ir::SizeBytes(e.dtype));
    cost += body.uses_inner(store.expression) ? each * inner : each;
  }
  if (body.has_shares()) {
    const double shares = static_cast<double>(body.shares);
    return {cost * outer / shares, shares};
  }
  return {cost, outer};
}

}  // namespace torch_lazy::codegen
