// SPDX-License-Identifier: Apache-2.0
#include "codegen/steps/tasks.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "codegen/layout/attention.h"
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

std::vector<Task> GroupTasks(const ir::Graph& graph, const Partition& partition, const std::vector<Body>& bodies) {
  std::vector<Task> tasks;
  for (const Body& body : bodies) {
    Task task;
    task.group = static_cast<int>(tasks.size());
    for (const Slot& slot : body.slots) {
      if (slot.written)
        AddOnce(&task.writes, slot.value);
      else
        AddRead(graph, slot.value, &task.reads);
      if (slot.written && graph.node(slot.value).op == ir::Op::kPut)
        AddRead(graph, partition.StoredAs(graph, graph.node(slot.value).inputs[0]), &task.reads);
      if (slot.written) task.position = std::max(task.position, static_cast<int>(slot.value));
    }
    tasks.push_back(std::move(task));
  }
  return tasks;
}

Task MatmulTask(const ir::Graph& graph, const Factors& factors, const Partition& partition, ir::Value matmul) {
  Task task;
  task.call = matmul;
  task.position = matmul;
  const Product product = ProductOfMatrices(graph, partition.concats, factors, matmul);
  for (const Matrix* operand : {&product.x, &product.y})
    AddRead(graph, partition.StoredAs(graph, operand->base), &task.reads);
  if (product.bias.has_value()) AddRead(graph, partition.StoredAs(graph, product.bias->base), &task.reads);
  task.writes.push_back(matmul);
  return task;
}

Task AttendTask(const ir::Graph& graph, const Factors& factors, const Partition& partition, ir::Value attend) {
  Task task;
  task.call = attend;
  task.position = attend;
  for (const Matrix& operand : AttentionOf(graph, partition.concats, factors, attend).operands)
    AddRead(graph, partition.StoredAs(graph, operand.base), &task.reads);
  task.writes.push_back(attend);
  return task;
}

std::vector<Task> CallTasks(const ir::Graph& graph, const Factors& factors, const Partition& partition) {
  std::vector<Task> tasks;
  absl::flat_hash_map<ir::Value, size_t> task_of_call;
  for (ir::Value v = 0; v < static_cast<ir::Value>(graph.nodes.size()); ++v) {
    const ir::Node& node = graph.node(v);
    if (ir::Info(node.op).kind == ir::Kind::kMatmul) tasks.push_back(MatmulTask(graph, factors, partition, v));
    if (ir::Info(node.op).kind == ir::Kind::kAttend) tasks.push_back(AttendTask(graph, factors, partition, v));
    if (node.op == ir::Op::kResult) tasks[task_of_call[node.inputs[0]]].writes.push_back(v);
    if (node.op != ir::Op::kCall) continue;
    Task task;
    task.call = v;
    task.position = v;
    for (const ir::Value operand : node.inputs) AddRead(graph, partition.StoredAs(graph, operand), &task.reads);
    if (!node.attrs.inout.empty()) task.writes.push_back(v);
    task_of_call[v] = tasks.size();
    tasks.push_back(std::move(task));
  }
  return tasks;
}

}  // namespace

Tasks MakeTasks(const ir::Graph& graph, const Factors& factors, const Partition& partition,
                const std::vector<Body>& bodies) {
  Tasks result;
  result.tasks = GroupTasks(graph, partition, bodies);
  const std::vector<Task> calls = CallTasks(graph, factors, partition);
  result.tasks.insert(result.tasks.end(), calls.begin(), calls.end());
  result.writer.assign(graph.nodes.size(), -1);
  result.readers.resize(graph.nodes.size());
  for (size_t u = 0; u < result.tasks.size(); ++u) {
    result.order.AddTask();
    for (const ir::Value value : result.tasks[u].reads) result.readers[value].push_back(static_cast<int>(u));
    for (const ir::Value value : result.tasks[u].writes) result.writer[value] = static_cast<int>(u);
  }
  for (size_t v = 0; v < graph.nodes.size(); ++v) {
    if (result.writer[v] < 0) continue;
    for (const int reader : result.readers[v]) result.order.AddEdge(result.writer[v], reader);
  }
  // Calls keep their order: they may draw random numbers.
  int last = -1;
  for (size_t u = bodies.size(); u < result.tasks.size(); ++u) {
    if (graph.node(result.tasks[u].call).op != ir::Op::kCall) continue;
    if (last >= 0) result.order.AddEdge(last, static_cast<int>(u));
    last = static_cast<int>(u);
  }
  return result;
}

void DelayFills(const ir::Graph& graph, Tasks* tasks) {
  for (const ir::Node& node : graph.nodes) {
    if (node.op != ir::Op::kConcat) continue;
    for (const ir::Value part : node.inputs) {
      const int fill = tasks->writer[part];
      if (fill < 0 || !tasks->tasks[fill].reads.empty()) continue;
      for (const ir::Value other : node.inputs) {
        const int writer = tasks->writer[other];
        if (writer >= 0 && !tasks->order.Reaches(fill, writer)) tasks->order.AddEdge(writer, fill);
      }
    }
  }
}

}  // namespace torch_lazy::codegen
