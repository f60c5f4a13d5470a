// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernels/loops.h"

namespace torch_lazy::codegen {
namespace {

bool Evenly(const Body& body, int outer, int inner) {
  for (const Address& address : body.addresses) {
    const Polynomial step = address.index.CoefficientOf(inner) * Polynomial(body.variables[inner].extent);
    if (address.index.CoefficientOf(outer) != step) return false;
  }
  return true;
}

std::vector<Loop> Collapse(const Body& body, Variable::Kind kind) {
  std::vector<Loop> loops;
  for (int v = 0; v < static_cast<int>(body.variables.size()); ++v) {
    const Variable& variable = body.variables[v];
    if (variable.kind != kind) continue;
    if (!loops.empty() && Evenly(body, loops.back().variable, v)) {
      Loop& loop = loops.back();
      loop = {loop.extent * variable.extent, v, loop.bits | uint64_t{1} << v};
    } else {
      loops.push_back({variable.extent, v, uint64_t{1} << v});
    }
  }
  return loops;
}

}  // namespace

Loops MakeLoops(const Body& body) {
  return {Collapse(body, Variable::Kind::kOuter), Collapse(body, Variable::Kind::kInner)};
}

}  // namespace torch_lazy::codegen
