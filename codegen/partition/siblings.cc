// SPDX-License-Identifier: Apache-2.0
#include "codegen/partition/siblings.h"

#include <algorithm>

#include "base/check.h"
#include "codegen/partition/elementwise_reads.h"
#include "codegen/partition/group_loops.h"
#include "codegen/partition/join_rules.h"
#include "codegen/partition/reduction_fit.h"
#include "codegen/partition/store.h"

namespace torch_lazy::codegen {
namespace {

using Read = ElementwiseReads::Read;

// The map at which the group, which has such a read as `candidate`, would compute the value; a rule's name where it
// does not.
absl::string_view WhyApart(PartitionState* state, ir::Value v, const ElementwiseReads& elementwise, const Read& read,
                           const Readers::InGroup& candidate, int* map_id) {
  if (const absl::string_view rule = WhyNoSibling(*state, v, candidate.group); !rule.empty()) return rule;
  const ir::Graph& graph = state->graph;
  Group& group = state->result.groups[candidate.group];
  const std::optional<IndexMap> map = MapOverSameLoops(graph, state->factors, v, group);
  if (!map.has_value()) return "other_loops";
  const bool is_reduction = ir::Info(graph.node(v).op).kind == ir::Kind::kReduce;
  if (is_reduction || group.shape == Group::Shape::kMap) {
    if (graph.type(read.value).dims != graph.type(graph.node(v).inputs[0]).dims) return "other_dims";
  } else if (!CanJoinReduction(*state, v, candidate.group)) {
    return "awaited";
  }
  *map_id = group.Intern(*map);
  const std::optional<IndexMap> at = elementwise.MapOf(read, state->factors, group, *map_id);
  if (!at.has_value() || group.Intern(*at) != candidate.map) return "read_at_other_places";
  return state->NothingBetween(v, candidate.group) ? "" : "needed_before";
}

void StoreShareSum(PartitionState* state, ir::Value v, int group, const IndexMap& map) {
  const int id = state->result.groups[group].Intern(map);
  state->readers[v].groups.push_back({group, id, 0});
  StoreIn(state, v, group, id);
}

bool JoinRows(PartitionState* state, ir::Value v, const ElementwiseReads& elementwise, const Read& read,
              const Readers::InGroup& candidate) {
  Group& group = state->result.groups[candidate.group];
  if (group.computed.size() >= kMostComputed || !state->NothingBetween(v, candidate.group)) return false;
  Group before = group;
  const std::optional<IndexMap> map = FitShareSum(state->graph, state->factors, state->options, v, group);
  if (map.has_value()) {
    const std::optional<IndexMap> at = elementwise.MapOf(read, state->factors, group, group.Intern(*map));
    if (at.has_value() && group.Intern(*at) == candidate.map) {
      StoreShareSum(state, v, candidate.group, *map);
      return true;
    }
  }
  group = std::move(before);
  return false;
}

}  // namespace

bool JoinSibling(PartitionState* state, ir::Value v) {
  if (ir::Info(state->graph.node(v).op).kind == ir::Kind::kIndexed) return false;
  const std::vector<int> own_readers = state->readers[v].Groups();
  const ElementwiseReads elementwise(state->graph, v);
  for (const Read& read : elementwise.reads()) {
    const auto candidates = state->readers[read.value].groups;
    for (const Readers::InGroup& candidate : candidates) {
      if (std::find(own_readers.begin(), own_readers.end(), candidate.group) != own_readers.end()) continue;
      int map = -1;
      const absl::string_view rule = WhyApart(state, v, elementwise, read, candidate, &map);
      if (!rule.empty()) {
        state->NoteRefusal(v, candidate.group, rule);
        continue;
      }
      state->readers[v].groups.push_back({candidate.group, map, 0});
      StoreIn(state, v, candidate.group, map);
      return true;
    }
  }
  return false;
}

void PlaceShareSum(PartitionState* state, ir::Value v) {
  const ElementwiseReads elementwise(state->graph, v);
  std::vector<Read> reads = elementwise.reads();
  std::sort(reads.begin(), reads.end(), [](const Read& a, const Read& b) {
    return a.value > b.value;  // what is made last has the fewest other readers
  });
  for (const Read& read : reads) {
    const auto candidates = state->readers[read.value].groups;
    for (const Readers::InGroup& candidate : candidates) {
      if (JoinRows(state, v, elementwise, read, candidate)) return;
      state->NoteRefusal(v, candidate.group, "other_rows");
    }
  }
  const int index = state->AddGroup();
  Group& group = state->result.groups[index];
  const ir::Dims& dims = state->graph.type(state->graph.node(v).inputs[0]).dims;
  for (const ir::Extent extent : state->factors.Of(dims))
    group.variables.push_back({Variable::Kind::kOuter, ProductOf({extent})});
  const std::optional<IndexMap> map = FitShareSum(state->graph, state->factors, state->options, v, group);
  LAZY_CHECK(map.has_value(), "a group of its own fits a sum of shares");
  StoreShareSum(state, v, index, *map);
}

}  // namespace torch_lazy::codegen
