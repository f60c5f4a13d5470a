// SPDX-License-Identifier: Apache-2.0
#include "codegen/partition/join_rules.h"

#include <algorithm>

#include "codegen/partition/group_loops.h"
#include "codegen/partition/op_cost.h"
#include "codegen/partition/reduction_fit.h"
#include "codegen/partition/value_inputs.h"
#include "codegen/plan/seen_sizes.h"

namespace torch_lazy::codegen {
namespace {

constexpr size_t kMostStored = 6;  // by a GPU's map
constexpr int kMostMaps = 2;       // at which one node is computed in one group
constexpr int kMostBroadcast = 3;  // ops in a row, computed again for each place

using Groups = std::vector<int>;

struct AgainRule {
  absl::string_view name;
  bool (*holds)(const PartitionState& state, ir::Value v, const Groups& groups);
};

constexpr AgainRule kAgainRules[] = {
    {"one_reader", [](const PartitionState&, ir::Value, const Groups& groups) { return groups.size() == 1; }},
    {"is_cheap",
     [](const PartitionState& state, ir::Value v, const Groups& groups) {
       return IsCheap(state.graph, state.look, state.options.target, v, groups.size());
     }},
    {"is_held_anyway", [](const PartitionState& state, ir::Value v,
                          const Groups& groups) { return state.worth.IsHeldAnyway(v, groups); }},
    {"moves_more_if_stored", [](const PartitionState& state, ir::Value v,
                                const Groups& groups) { return state.worth.MovesMoreIfStored(v, groups); }},
    {"is_folded_again", [](const PartitionState& state, ir::Value v,
                           const Groups& groups) { return state.worth.IsFoldedAgain(v, groups); }},
};

struct JoinRule {
  absl::string_view name;
  bool (*refuses)(const PartitionState& state, ir::Value v, int group);
};

absl::string_view FirstOf(absl::Span<const JoinRule> rules, const PartitionState& state, ir::Value v, int group) {
  const auto rule =
      std::find_if(rules.begin(), rules.end(), [&](const JoinRule& r) { return r.refuses(state, v, group); });
  return rule == rules.end() ? "" : rule->name;
}

// A sum of everything, which other groups wait for: they need not wait for more than that.
bool IsSingleResult(const PartitionState& state, ir::Value v, int) {
  const ir::Node& node = state.graph.node(v);
  return ir::Info(node.op).kind == ir::Kind::kReduce && state.factors.Of(node.type.dims).empty();
}

// Columns run across rows: a value made with reductions along these (a normalisation's gradient,
// say) is better stored by a group of their own, which computes them too.
bool BelongsToRows(const PartitionState& state, ir::Value v, int group) {
  const ir::Value reduction = state.look.reduction_behind[v];
  return state.result.groups[group].shape == Group::Shape::kColumns && reduction != ir::kNoValue &&
         ReductionShape(state.graph, reduction) == Group::Shape::kRows;
}

bool HasManyNodes(const PartitionState& state, ir::Value, int group) {
  return state.result.groups[group].computed.size() >= kMostComputed;
}

// Of many results a GPU's kernel has few threads at once.
bool StoresMuch(const PartitionState& state, ir::Value, int group) {
  const Group& of = state.result.groups[group];
  return state.options.target == Target::kCuda && of.shape == Group::Shape::kMap && of.roots.size() >= kMostStored;
}

// A large map on a GPU that computes about as long as memory moves: whatever shares its reads, but no number, would
// run no sooner with it, and with fewer threads at once.
bool IsBusy(const PartitionState& state, ir::Value v, int group) {
  constexpr double kLarge = 64 << 20;  // bytes; more than its cache holds
  const Group& of = state.result.groups[group];
  if (state.options.target != Target::kCuda || of.shape != Group::Shape::kMap ||
      SeenBytes(state.graph.type(v), state.options.seen_extents) < kLarge)
    return false;
  return std::any_of(of.computed.begin(), of.computed.end(), [&](ir::Value computed) {
    return (ir::Info(state.graph.node(computed).op).traits & ir::kTranscendental) != 0;
  });
}

template <typename Test>
bool AnyReader(const PartitionState& state, ir::Value v, int group, Test test) {
  const auto& readers = state.readers[v].groups;
  return std::any_of(readers.begin(), readers.end(),
                     [&](const Readers::InGroup& reader) { return reader.group == group && test(reader); });
}

// So many ops in a row would be computed again for each place of a broadcast.
bool RepeatsManyOps(const PartitionState& state, ir::Value v, int group) {
  return AnyReader(state, v, group, [](const Readers::InGroup& reader) { return reader.broadcast > kMostBroadcast; });
}

bool RepeatsCostlyOp(const PartitionState& state, ir::Value v, int group) {
  return IsCostly(state.graph.node(v)) &&
         AnyReader(state, v, group, [](const Readers::InGroup& reader) { return reader.broadcast > 0; });
}

// A vector that is multiplied by each row of a matrix is made once, and read as narrow as it is rounded.
bool RepeatsVector(const PartitionState& state, ir::Value v, int group) {
  return state.options.target == Target::kCuda && state.look.is_vector[v] &&
         AnyReader(state, v, group, [](const Readers::InGroup& reader) { return reader.broadcast > 0; });
}

bool IsNeededAtManyPlaces(const PartitionState& state, ir::Value v, int group) {
  int maps = 0;
  AnyReader(state, v, group, [&](const Readers::InGroup&) { return ++maps, false; });
  return maps > (ir::Info(state.graph.node(v).op).kind == ir::Kind::kReduce ? 1 : kMostMaps);
}

// Of what is put beside other rows, a sum is made before, with others like it, and stored as narrow as it is rounded.
bool RoundsSumOfPuts(const PartitionState& state, ir::Value v, int group) {
  const ir::Node& node = state.graph.node(v);
  if (node.op != ir::Op::kCast || !PutsBesideOthers(state.graph, state.result.groups[group])) return false;
  ir::Value from = node.inputs[0];
  while (ir::Info(state.graph.node(from).op).kind == ir::Kind::kView) from = state.graph.node(from).inputs[0];
  return ir::Info(state.graph.node(from).op).kind == ir::Kind::kReduce &&
         ir::SizeBytes(node.type.dtype) < ir::SizeBytes(state.graph.type(from).dtype);
}

// Blocks that make shares of one row would all store it.
bool IsReadByItsShares(const PartitionState& state, ir::Value v, int group) {
  const Group& of = state.result.groups[group];
  return IsReadByShares(of, of.maps[state.readers[v].MapIn(group)]);
}

bool IsReadAtOtherPlaces(const PartitionState& state, ir::Value v, int group) {
  const int first = state.readers[v].MapIn(group);
  return AnyReader(state, v, group, [&](const Readers::InGroup& reader) { return reader.map != first; });
}

// Another reader has to run before the group.
bool IsNeededBefore(const PartitionState& state, ir::Value v, int group) { return !state.NothingBetween(v, group); }

constexpr JoinRule kComputeRules[] = {
    {"full", HasManyNodes},
    {"rounds_sum_of_puts", RoundsSumOfPuts},
    {"repeats_vector", RepeatsVector},
    {"repeats_many_ops", RepeatsManyOps},
    {"repeats_costly_op", RepeatsCostlyOp},
    {"needed_at_many_places", IsNeededAtManyPlaces},
};

constexpr JoinRule kStoreRules[] = {
    {"single_result", IsSingleResult},
    {"belongs_to_rows", BelongsToRows},
    {"rounds_sum_of_puts", RoundsSumOfPuts},
    {"stores_much", StoresMuch},
    {"full", HasManyNodes},
    {"repeats_vector", RepeatsVector},
    {"repeats_many_ops", RepeatsManyOps},
    {"repeats_costly_op", RepeatsCostlyOp},
    {"needed_at_many_places", IsNeededAtManyPlaces},
    {"read_by_its_shares", IsReadByItsShares},
    {"read_at_other_places", IsReadAtOtherPlaces},
    {"needed_before", IsNeededBefore},
};

constexpr JoinRule kSiblingRules[] = {
    {"stores_much", StoresMuch},
    {"full", HasManyNodes},
    {"busy", IsBusy},
};

}  // namespace

absl::string_view WhyStoredForOne(const PartitionState& state, ir::Value v, int group) {
  return state.worth.HoldsMemory(v, group) ? "holds_memory" : "";
}

absl::string_view WhyComputedAgain(const PartitionState& state, ir::Value v, const std::vector<int>& groups) {
  for (const AgainRule& rule : kAgainRules) {
    if (rule.holds(state, v, groups)) return rule.name;
  }
  return "";
}

absl::string_view WhyNotComputed(const PartitionState& state, ir::Value v, int group) {
  return FirstOf(kComputeRules, state, v, group);
}

absl::string_view WhyNotStored(const PartitionState& state, ir::Value v, int group) {
  return FirstOf(kStoreRules, state, v, group);
}

absl::string_view WhyNoSibling(const PartitionState& state, ir::Value v, int group) {
  return FirstOf(kSiblingRules, state, v, group);
}

bool CanJoinReduction(const PartitionState& state, ir::Value v, int group) {
  if (state.worth.CallsBefore(group) > state.lifetimes.calls_before[v]) return false;
  const auto is_awaited = [&](ir::Value value) {
    const Readers& readers = state.readers[value];
    return !readers.tasks.empty() || std::any_of(readers.groups.begin(), readers.groups.end(),
                                                 [&](const Readers::InGroup& reader) { return reader.group != group; });
  };
  const auto& roots = state.result.groups[group].roots;
  return std::none_of(roots.begin(), roots.end(), [&](const Group::Root& root) {
    return (is_awaited(v) && state.look.replaces_shared[root.value]) ||
           (state.look.replaces_shared[v] && is_awaited(root.value));
  });
}

}  // namespace torch_lazy::codegen
