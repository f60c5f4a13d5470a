// SPDX-License-Identifier: Apache-2.0
#include "codegen/row_prefetch.h"

#include <algorithm>

namespace torch_lazy::codegen {
namespace {

// Does the place move evenly, by one along the row and by anything from row to row?
bool IsStream(const Body& body, const Loops& loops, int a) {
  const Address& address = body.addresses[a];
  const bool depends_on_data = std::any_of(
      address.index.terms.begin(), address.index.terms.end(), [&](const Affine::Term& term) {
        return body.variables[term.variable].kind == Variable::Kind::kData;
      });
  return address.slot >= 0 && !depends_on_data &&
         address.index.CoefficientOf(loops.inner[0].variable).is_one() &&
         !address.index.CoefficientOf(loops.outer[0].variable).is_zero();
}

void AddOnce(int a, std::vector<int>* addresses) {
  if (std::find(addresses->begin(), addresses->end(), a) == addresses->end())
    addresses->push_back(a);
}

}  // namespace

RowPrefetch MakeRowPrefetch(const Body& body, const Loops& loops, const RowStages& rows) {
  RowPrefetch prefetch;
  if (loops.outer.size() != 1 || loops.inner.size() != 1) return prefetch;
  int walks = 0;
  for (size_t stage = 0; stage < rows.stages.size(); ++stage) {
    const RowStage& walk = rows.stages[stage];
    if (walk.reductions.empty() && walk.stores.empty()) continue;
    ++walks;
    if (!walk.reductions.empty()) prefetch.stage = static_cast<int>(stage);
  }
  if (walks < 2 || prefetch.stage < 0) return {};
  for (const RowStage& walk : rows.stages) {
    for (const int number : walk.numbers) {
      const Expression& expression = body.expressions[number];
      if (expression.kind == Expression::Kind::kLoad && IsStream(body, loops, expression.address))
        AddOnce(expression.address, &prefetch.loads);
    }
  }
  for (size_t stage = prefetch.stage + 1; stage < rows.stages.size(); ++stage) {
    for (const Store& store : rows.stages[stage].stores) {
      if (IsStream(body, loops, store.address)) AddOnce(store.address, &prefetch.stores);
    }
  }
  if (prefetch.loads.empty() && prefetch.stores.empty()) return {};
  return prefetch;
}

}  // namespace torch_lazy::codegen
