// SPDX-License-Identifier: Apache-2.0
#include "codegen/steps/non_temporal_stores.h"

#include <algorithm>

#include "codegen/kernels/loops.h"
#include "codegen/plan/seen_sizes.h"

namespace torch_lazy::codegen {
namespace {

constexpr double kManyBytes = 8 << 20;

// A new buffer of the caller's that no kernel or call reads: a parameter's is in the cache already.
bool LeavesForGood(const ir::Graph& graph, const Tasks& tasks, ir::Value value) {
  if (!tasks.readers[value].empty()) return false;
  return std::any_of(graph.outputs.begin(), graph.outputs.end(), [&](const ir::Output& output) {
    ir::Value stored = output.value;
    while (stored != value && graph.node(stored).op == ir::Op::kReshape) stored = graph.node(stored).inputs[0];
    return stored == value && output.into < 0;
  });
}

// By a row's last stage, which folds nothing.
bool IsInOrder(const Body& body, const Loops& loops, const Store& store) {
  const Address& address = body.addresses[store.address];
  if (DependsOnData(body, address)) return false;
  const int stage = body.expressions[store.expression].depth;
  const bool folds = std::any_of(body.expressions.begin(), body.expressions.end(), [&](const Expression& e) {
    return e.kind == Expression::Kind::kReduce && e.depth == stage + 1;
  });
  return !folds && address.index.CoefficientOf(loops.inner[0].variable).is_one();
}

}  // namespace

void MarkNonTemporalStores(const ir::Graph& graph, const Partition& partition, const Tasks& tasks,
                           const CompileOptions& options, std::vector<Body>* bodies) {
  for (size_t g = 0; g < bodies->size(); ++g) {
    if (partition.groups[g].shape != Group::Shape::kRows) continue;
    Body& body = (*bodies)[g];
    const Loops loops = MakeLoops(body);
    for (Store& store : body.stores) {
      const ir::Value value = body.slots[body.addresses[store.address].slot].value;
      store.is_non_temporal = loops.inner.size() == 1 &&
                              SeenBytes(graph.type(value), options.seen_extents) >= kManyBytes &&
                              LeavesForGood(graph, tasks, value) && IsInOrder(body, loops, store);
    }
  }
}

}  // namespace torch_lazy::codegen
