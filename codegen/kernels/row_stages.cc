// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernels/row_stages.h"

#include <algorithm>

#include "codegen/partition/op_cost.h"

namespace torch_lazy::codegen {
namespace {

constexpr size_t kMostScratch = 4, kMostInRegisters = 8;
constexpr double kWorthKeeping = 0.1;  // nanoseconds to compute an element anew
constexpr double kLoad = 0.02;         // from the cache

bool Contains(const std::vector<int>& list, int e) { return std::find(list.begin(), list.end(), e) != list.end(); }

// Reductions and stores of each stage, without the numbers they need.
std::vector<RowStage> Sinks(const Body& body) {
  int stages = 0;
  for (const Expression& e : body.expressions) stages = std::max(stages, e.depth + 1);
  std::vector<RowStage> sinks(stages);
  for (size_t e = 0; e < body.expressions.size(); ++e) {
    const Expression& expression = body.expressions[e];
    if (expression.kind != Expression::Kind::kReduce) continue;
    sinks[expression.depth - 1].reductions.push_back(static_cast<int>(e));
  }
  for (const Store& store : body.stores) {
    if (StoresAlongRow(body, store)) sinks[body.expressions[store.expression].depth].stores.push_back(store);
  }
  return sinks;
}

void AddInputs(const Body& body, int e, std::vector<int>* inputs) {
  const Expression& expression = body.expressions[e];
  inputs->insert(inputs->end(), expression.arguments.begin(), expression.arguments.end());
  if (expression.address < 0) return;
  for (const Affine::Term& term : body.addresses[expression.address].index.terms) {
    if (body.variables[term.variable].kind == Variable::Kind::kData) inputs->push_back(body.data[term.variable]);
  }
}

// Fills in the numbers; what an earlier stage kept is not computed again.
void FillNumbers(const Body& body, RowStages* rows) {
  std::vector<int> available;
  for (RowStage& stage : rows->stages) {
    std::vector<int> todo;
    for (const int reduction : stage.reductions) todo.push_back(body.expressions[reduction].arguments[0]);
    for (const Store& store : stage.stores) todo.push_back(store.expression);
    stage.numbers.clear();
    stage.kept.clear();
    while (!todo.empty()) {
      const int e = todo.back();
      todo.pop_back();
      if (!body.uses_inner(e) || Contains(stage.numbers, e)) continue;
      stage.numbers.push_back(e);
      if (Contains(available, e)) continue;
      if (Contains(rows->scratch, e)) stage.kept.push_back(e);
      AddInputs(body, e, &todo);
    }
    std::sort(stage.numbers.begin(), stage.numbers.end());
    available.insert(available.end(), stage.kept.begin(), stage.kept.end());
  }
}

// What an element of e costs in a stage that does not find it in scratch memory.
double CostAnew(const ir::Graph& graph, const Body& body, const RowStages& rows, Keep keep, int e) {
  double cost = 0;
  std::vector<int> seen = {e};
  for (size_t k = 0; k < seen.size(); ++k) {
    const Expression& expression = body.expressions[seen[k]];
    const double load = keep == Keep::kLoads ? 2 * kWorthKeeping : kLoad;
    cost += expression.kind == Expression::Kind::kOp     ? NanosecondsOf(graph.node(expression.node))
            : expression.kind == Expression::Kind::kLoad ? load
                                                         : kLoad;
    std::vector<int> inputs;
    AddInputs(body, seen[k], &inputs);
    for (const int input : inputs) {
      if (body.uses_inner(input) && !Contains(rows.scratch, input) && !Contains(seen, input)) seen.push_back(input);
    }
  }
  return cost;
}

// The costly number nearest to the results that more than one stage computes; -1 if there is none.
int CostlyTwice(const ir::Graph& graph, const Body& body, const RowStages& rows, Keep keep) {
  for (int e = static_cast<int>(body.expressions.size()) - 1; e >= 0; --e) {
    const Expression& expression = body.expressions[e];
    const bool may_be_kept = expression.kind == Expression::Kind::kOp ||
                             (expression.kind == Expression::Kind::kLoad && keep == Keep::kLoads);
    const bool is_costly = may_be_kept && body.uses_inner(e) && !Contains(rows.scratch, e) &&
                           CostAnew(graph, body, rows, keep, e) > kWorthKeeping;
    if (!is_costly) continue;
    const auto stages = std::count_if(rows.stages.begin(), rows.stages.end(),
                                      [e](const RowStage& stage) { return Contains(stage.numbers, e); });
    if (stages > 1) return e;
  }
  return -1;
}

}  // namespace

bool StoresAlongRow(const Body& body, const Store& store) {
  const auto& terms = body.addresses[store.address].index.terms;
  return std::any_of(terms.begin(), terms.end(),
                     [&](const Affine::Term& term) { return (body.inner >> term.variable & 1) != 0; });
}

RowStages MakeRowStages(const ir::Graph& graph, const Body& body, Keep keep) {
  RowStages rows;
  rows.stages = Sinks(body);
  FillNumbers(body, &rows);
  const size_t most = keep == Keep::kNothing ? 0 : keep == Keep::kCostly ? kMostScratch : kMostInRegisters;
  while (rows.scratch.size() < most) {
    const int costly = CostlyTwice(graph, body, rows, keep);
    if (costly < 0) break;
    rows.scratch.push_back(costly);
    FillNumbers(body, &rows);
  }
  return rows;
}

}  // namespace torch_lazy::codegen
