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

}  // namespace

void StoreInNewGroup(PartitionState* state, ir::Value v) {
  const ir::Node& node = state->graph.node(v);
  const int index = state->AddGroup();
  Group& group = state->result.groups[index];
  for (const ir::Extent extent : state->factors.Of(node.type.dims)) {
    group.variables.push_back({Variable::Kind::kOuter, ProductOf({extent})});
  }
  const int map = group.Intern(IdentityMap(node.type.dims, state->factors, 0));
  if (ir::Info(node.op).kind == ir::Kind::kReduce) {
    LAZY_CHECK(FitReduction(state->graph, state->factors, state->options, v, map, group),
               "a group of its own fits a reduction");
  }
  state->readers[v].groups.push_back({index, map, 0});
  StoreIn(state, v, index, map);
}

void StoreIn(PartitionState* state, ir::Value v, int group, int map) {
  ComputeFromWhatIsRead(state, v, group);
  state->NoteReaders(v, state->GroupTask(group));
  state->result.groups[group].roots.push_back({v, map});
  state->result.home[v] = group;
  state->Compute(v, group);
}

}  // namespace torch_lazy::codegen
