// SPDX-License-Identifier: Apache-2.0
#include "codegen/steps/tasks.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "codegen/layout/matrix.h"

namespace torch_lazy::codegen {
namespace {

void AddOnce(std::vector<ir::Value>* values, ir::Value value) {
  if (std::find(values->begin(), values->end(), value) == values->end()) values->push_back(value);
}

// A concat is read when its parts are.
void AddRead(const ir::Graph& graph, ir::Value value, std::vector<ir::Value>* reads) {
  ForEachPart(graph, value, [&](ir::Value part) { AddOnce(reads, part); });
}

std::vector<Unit> GroupUnits(const ir::Graph& graph, const std::vector<Body>& bodies) {
  std::vector<Unit> units;
  for (const Body& body : bodies) {
    Unit unit;
    unit.group = static_cast<int>(units.size());
    for (const Slot& slot : body.slots) {
      if (slot.written)
        AddOnce(&unit.writes, slot.value);
      else
        AddRead(graph, slot.value, &unit.reads);
      if (slot.written) unit.position = std::max(unit.position, static_cast<int>(slot.value));
    }
    units.push_back(std::move(unit));
  }
  return units;
}

Unit MatmulUnit(const ir::Graph& graph, const Factors& factors, const Partition& partition, ir::Value matmul) {
  Unit unit;
  unit.call = matmul;
  unit.position = matmul;
  const Product product = ProductOfMatrices(graph, partition.concats, factors, matmul);
  for (const Matrix* operand : {&product.x, &product.y})
    AddRead(graph, partition.StoredAs(graph, operand->base), &unit.reads);
  if (product.bias.has_value()) AddRead(graph, partition.StoredAs(graph, product.bias->base), &unit.reads);
  unit.writes.push_back(matmul);
  return unit;
}

std::vector<Unit> CallUnits(const ir::Graph& graph, const Factors& factors, const Partition& partition) {
  std::vector<Unit> units;
  absl::flat_hash_map<ir::Value, size_t> unit_of_call;
  for (ir::Value v = 0; v < static_cast<ir::Value>(graph.nodes.size()); ++v) {
    const ir::Node& node = graph.node(v);
    if (ir::Info(node.op).kind == ir::Kind::kMatmul) units.push_back(MatmulUnit(graph, factors, partition, v));
    if (node.op == ir::Op::kResult) units[unit_of_call[node.inputs[0]]].writes.push_back(v);
    if (node.op != ir::Op::kCall) continue;
    Unit unit;
    unit.call = v;
    unit.position = v;
    for (const ir::Value operand : node.inputs) AddRead(graph, partition.StoredAs(graph, operand), &unit.reads);
    if (!node.attrs.inout.empty()) unit.writes.push_back(v);
    unit_of_call[v] = units.size();
    units.push_back(std::move(unit));
  }
  return units;
}

}  // namespace

Units MakeUnits(const ir::Graph& graph, const Factors& factors, const Partition& partition,
                const std::vector<Body>& bodies) {
  Units result;
  result.units = GroupUnits(graph, bodies);
  const std::vector<Unit> calls = CallUnits(graph, factors, partition);
  result.units.insert(result.units.end(), calls.begin(), calls.end());
  result.writer.assign(graph.nodes.size(), -1);
  result.readers.resize(graph.nodes.size());
  for (size_t u = 0; u < result.units.size(); ++u) {
    result.order.AddUnit();
    for (const ir::Value value : result.units[u].reads) result.readers[value].push_back(static_cast<int>(u));
    for (const ir::Value value : result.units[u].writes) result.writer[value] = static_cast<int>(u);
  }
  for (size_t v = 0; v < graph.nodes.size(); ++v) {
    if (result.writer[v] < 0) continue;
    for (const int reader : result.readers[v]) result.order.AddEdge(result.writer[v], reader);
  }
  // Calls keep their order: they may draw random numbers.
  int last = -1;
  for (size_t u = bodies.size(); u < result.units.size(); ++u) {
    if (graph.node(result.units[u].call).op != ir::Op::kCall) continue;
    if (last >= 0) result.order.AddEdge(last, static_cast<int>(u));
    last = static_cast<int>(u);
  }
  return result;
}

void DelayFills(const ir::Graph& graph, Units* units) {
  for (const ir::Node& node : graph.nodes) {
    if (node.op != ir::Op::kConcat) continue;
    for (const ir::Value part : node.inputs) {
      const int fill = units->writer[part];
      if (fill < 0 || !units->units[fill].reads.empty()) continue;
      for (const ir::Value other : node.inputs) {
        const int writer = units->writer[other];
        if (writer >= 0 && !units->order.Reaches(fill, writer)) units->order.AddEdge(writer, fill);
      }
    }
  }
}

}  // namespace torch_lazy::codegen
