// SPDX-License-Identifier: Apache-2.0
#include "codegen/partition/partition_state.h"

#include <algorithm>

#include "codegen/partition/group_loops.h"
#include "codegen/partition/reduction_fit.h"

namespace torch_lazy::codegen {

PartitionState::PartitionState(const ir::Graph& graph, const Concats& concats, const Factors& factors,
                               const CompileOptions& options, std::vector<Reason>* reasons)
    : graph(graph),
      look(MakeLookAhead(graph)),
      lifetimes(MakeLifetimes(graph, options)),
      worth({graph, look, lifetimes, options.target, readers, result.groups, call_of_task}),
      factors(factors),
      options(options),
      reasons(reasons),
      readers(graph.nodes.size()),
      share_sums(graph.nodes.size()),
      task(graph.nodes.size(), -1) {
  result.home.assign(graph.nodes.size(), -1);
  result.concats = concats;
}

void PartitionState::AddCalls() {
  int previous = -1;
  for (size_t v = 0; v < graph.nodes.size(); ++v) {
    const ir::Kind kind = ir::Info(graph.nodes[v].op).kind;
    if (kind == ir::Kind::kMatmul || kind == ir::Kind::kAttend) task[v] = AddCallTask(v);
    if (graph.nodes[v].op != ir::Op::kCall) continue;
    task[v] = AddCallTask(v);
    if (previous >= 0) dependencies.AddEdge(previous, task[v]);
    previous = task[v];
  }
}

int PartitionState::AddCallTask(size_t v) {
  const int added = dependencies.AddTask();
  call_of_task[added] = static_cast<ir::Value>(v);
  return added;
}

int PartitionState::AddGroup() {
  result.groups.emplace_back();
  group_tasks.push_back(dependencies.AddTask());
  return static_cast<int>(result.groups.size()) - 1;
}

bool PartitionState::Fit(ir::Value v, int group) {
  if (ir::Info(graph.node(v).op).kind != ir::Kind::kReduce) return true;
  return FitReduction(graph, factors, options, v, readers[v].MapIn(group), result.groups[group]);
}

void PartitionState::Compute(ir::Value v, int group) {
  result.groups[group].computed.insert(v);
  const Readers of_value = readers[v];
  for (const Readers::InGroup& reader : of_value.groups) {
    if (reader.group != group) continue;
    for (size_t k = 0; k < graph.node(v).inputs.size(); ++k) ReadInput(reader, v, static_cast<int>(k));
  }
}

void PartitionState::ReadInput(const Readers::InGroup& reader, ir::Value v, int input) {
  const ir::Value from = graph.node(v).inputs[input];
  if (IsCopy(graph, v)) return RequireStored(from, GroupTask(reader.group));
  Group& group = result.groups[reader.group];
  const std::optional<IndexMap> map = InputMap(graph, factors, group, v, input, reader.map);
  if (!map.has_value()) return RequireStored(from, GroupTask(reader.group));
  const int id = group.Intern(*map);
  Readers& of_input = readers[from];
  const int broadcast = IsRepeated(group, *map) ? reader.broadcast + 1 : 0;
  for (Readers::InGroup& known : of_input.groups) {
    if (known.group != reader.group || known.map != id) continue;
    known.broadcast = std::max(known.broadcast, broadcast);
    return;
  }
  of_input.groups.push_back({reader.group, id, broadcast});
}

void PartitionState::RequireStored(ir::Value v, int task) {
  readers[v].stored = true;
  readers[v].tasks.push_back(task);
}

void PartitionState::NoteReaders(ir::Value v, int task) {
  for (const Readers::InGroup& reader : readers[v].groups) dependencies.AddEdge(task, GroupTask(reader.group));
  for (const int reader : readers[v].tasks) dependencies.AddEdge(task, reader);
}

bool PartitionState::NothingBetween(ir::Value v, int group) const {
  const Readers& of_value = readers[v];
  const int own = GroupTask(group);
  for (const int other : of_value.tasks) {
    if (dependencies.Reaches(other, own)) return false;
  }
  for (const Readers::InGroup& reader : of_value.groups) {
    if (reader.group != group && dependencies.Reaches(GroupTask(reader.group), own)) return false;
  }
  return true;
}

}  // namespace torch_lazy::codegen
