// SPDX-License-Identifier: Apache-2.0
#include "codegen/partition/store.h"

#include <algorithm>

#include "base/check.h"
#include "codegen/partition/join_rules.h"
#include "codegen/partition/reduction_fit.h"

namespace torch_lazy::codegen {
namespace {

// A GPU's group that reads all that a stored value is made of need not read the value, too: where a
// ReLU was open, say, follows from what the gradient of the normalisation before it reads.
void ComputeFromWhatIsRead(PartitionState* state, ir::Value v, int home) {
  if (state->options.target != Target::kCuda) return;
  for (const int group : state->readers[v].Groups()) {
    if (group == home || !WhyNotComputed(*state, v, group).empty() || !state->worth.MakesFromWhatItReads(v, group))
      continue;
    state->NoteComputed(v, group, "made_of_what_is_read");
    state->Compute(v, group);
    auto& readers = state->readers[v].groups;
    readers.erase(std::remove_if(readers.begin(), readers.end(),
                                 [&](const Readers::InGroup& reader) { return reader.group == group; }),
                  readers.end());
  }
}

// With a loop for each factor of these dims.
int AddGroupOver(PartitionState* state, const ir::Dims& dims) {
  const int index = state->AddGroup();
  for (const ir::Extent extent : state->factors.Of(dims))
    state->result.groups[index].variables.push_back({Variable::Kind::kOuter, ProductOf({extent})});
  return index;
}

// What a put writes anew, whatever its dims.
ir::Value WrittenBy(const ir::Graph& graph, ir::Value put) {
  ir::Value written = graph.node(put).inputs[0];
  while (graph.node(written).op == ir::Op::kReshape) written = graph.node(written).inputs[0];
  return written;
}

// A group that puts as many rows at the same places of others, and may store those of `put`, too; -1 if there is none.
int GroupOfOtherPut(const PartitionState& state, ir::Value put) {
  const auto is_like = [&](const Group::Root& root) {
    return PutAlike(state.graph, put, root.value) && WrittenBy(state.graph, put) != WrittenBy(state.graph, root.value);
  };
  for (int g = 0; g < static_cast<int>(state.result.groups.size()); ++g) {
    const Group& group = state.result.groups[g];
    if (group.shape == Group::Shape::kMap && std::all_of(group.roots.begin(), group.roots.end(), is_like) &&
        !state.readers[put].Has(g) && state.NothingBetween(put, g))
      return g;
  }
  return -1;
}

}  // namespace

void StoreInNewGroup(PartitionState* state, ir::Value v) {
  const ir::Node& node = state->graph.node(v);
  const int index = AddGroupOver(state, node.type.dims);
  Group& group = state->result.groups[index];
  const int map = group.Intern(IdentityMap(node.type.dims, state->factors, 0));
  if (ir::Info(node.op).kind == ir::Kind::kReduce) {
    LAZY_CHECK(FitReduction(state->graph, state->factors, state->options, v, map, group),
               "a group of its own fits a reduction");
  }
  state->readers[v].groups.push_back({index, map, 0});
  StoreIn(state, v, index, map);
}

void StorePut(PartitionState* state, ir::Value put) {
  const ir::Node& node = state->graph.node(put);
  const ir::Dims& dims = state->graph.type(node.inputs[1]).dims;
  int index = GroupOfOtherPut(*state, put);
  if (index < 0) index = AddGroupOver(state, dims);
  Group& group = state->result.groups[index];
  const int map = group.Intern(IdentityMap(dims, state->factors, 0));
  state->NoteReaders(put, state->GroupTask(index));
  group.roots.push_back({put, map});
  state->result.home[put] = index;
  state->RequireStored(node.inputs[0], state->GroupTask(index));
  for (const int input : {1, 2}) state->ReadInput({index, map, 0}, put, input);
}

void StoreIn(PartitionState* state, ir::Value v, int group, int map) {
  ComputeFromWhatIsRead(state, v, group);
  state->NoteReaders(v, state->GroupTask(group));
  state->result.groups[group].roots.push_back({v, map});
  state->result.home[v] = group;
  state->Compute(v, group);
}

}  // namespace torch_lazy::codegen
