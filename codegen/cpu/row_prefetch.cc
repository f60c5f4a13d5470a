// SPDX-License-Identifier: Apache-2.0
#include "codegen/cpu/row_prefetch.h"

#include <algorithm>

#include "codegen/partition/op_cost.h"

namespace torch_lazy::codegen {
namespace {

// Does the place move evenly, by one along the row and by anything from row to row?
bool IsStream(const Body& body, const Loops& loops, int a) {
  const Address& address = body.addresses[a];
  return address.slot >= 0 && !DependsOnData(body, address) &&
         address.index.CoefficientOf(loops.inner[0].variable).is_one() &&
         !address.index.CoefficientOf(loops.outer[0].variable).is_zero();
}

void AddOnce(int a, std::vector<int>* addresses) {
  if (std::find(addresses->begin(), addresses->end(), a) == addresses->end()) addresses->push_back(a);
}

// Of what the walk computes anew, per element.
double Arithmetic(const ir::Graph& graph, const Body& body, const RowStage& walk, const std::vector<int>& kept) {
  double cost = 0;
  for (const int e : walk.numbers) {
    const Expression& expression = body.expressions[e];
    const bool is_kept = std::find(kept.begin(), kept.end(), e) != kept.end();
    if (expression.kind == Expression::Kind::kOp && !is_kept) cost += NanosecondsOf(graph.node(expression.node));
  }
  return cost;
}

}  // namespace

RowPrefetch MakeRowPrefetch(const ir::Graph& graph, const Body& body, const Loops& loops, const RowStages& rows) {
  RowPrefetch prefetch;
  if (loops.outer.size() != 1 || loops.inner.size() != 1) return prefetch;
  int walks = 0;
  double most = 0;
  std::vector<int> kept;
  for (size_t stage = 0; stage < rows.stages.size(); ++stage) {
    const RowStage& walk = rows.stages[stage];
    if (walk.reductions.empty() && walk.stores.empty()) continue;
    ++walks;
    const double cost = Arithmetic(graph, body, walk, kept);
    kept.insert(kept.end(), walk.kept.begin(), walk.kept.end());
    if (walk.reductions.empty() || cost < most) continue;
    most = cost;
    prefetch.stage = static_cast<int>(stage);
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
      if (!store.is_non_temporal && IsStream(body, loops, store.address)) AddOnce(store.address, &prefetch.stores);
    }
  }
  if (prefetch.loads.empty() && prefetch.stores.empty()) return {};
  return prefetch;
}

}  // namespace torch_lazy::codegen
