// SPDX-License-Identifier: Apache-2.0
#include "codegen/partition/partition.h"

#include <algorithm>

#include "base/pace.h"
#include "codegen/layout/attention.h"
#include "codegen/layout/matrix.h"
#include "codegen/partition/group_loops.h"
#include "codegen/partition/join_rules.h"
#include "codegen/partition/reduction_fit.h"
#include "codegen/partition/siblings.h"
#include "codegen/partition/store.h"

namespace torch_lazy::codegen {
namespace {

// The worklist: all nodes, from the last to the first.
class Partitioner {
 public:
  Partitioner(const ir::Graph& graph, const Concats& concats, const Factors& factors, const CompileOptions& options,
              std::vector<Reason>* reasons)
      : state_(graph, concats, factors, options, reasons), graph_(graph) {}

  Partition Run() {
    state_.AddCalls();
    for (const ir::Output& output : graph_.outputs) state_.readers[output.value].stored = true;
    for (auto v = static_cast<ir::Value>(graph_.nodes.size()); v-- > 0; base::GiveWay()) Visit(v);
    return std::move(state_.result);
  }

 private:
  void Visit(ir::Value v) {
    const ir::Node& node = graph_.node(v);
    for (const ir::Value sum : state_.share_sums[v]) PlaceShareSum(&state_, sum);
    const Readers& readers = state_.readers[v];
    const bool is_read = readers.stored || !readers.groups.empty();
    switch (ir::Info(node.op).kind) {
      case ir::Kind::kLeaf:
        if (node.op != ir::Op::kParam && readers.stored) StoreInNewGroup(&state_, v);
        return;
      case ir::Kind::kCall:
        return VisitCall(v);
      case ir::Kind::kView:
        if (is_read) VisitView(v);
        return;
      case ir::Kind::kElementwise:
      case ir::Kind::kReduce:
      case ir::Kind::kIndexed:
        if (is_read) VisitCompute(v);
        return;
      case ir::Kind::kPartial:  // when all others that read its operand are known
        if (is_read) state_.share_sums[node.inputs[0]].push_back(v);
        return;
      case ir::Kind::kPut:
        if (is_read) StorePut(&state_, v);
        return;
      case ir::Kind::kConcat:
        if (is_read) VisitConcat(v);
        return;
      case ir::Kind::kMatmul:
        return VisitMatmul(v);
      case ir::Kind::kAttend:
        return VisitAttend(v);
    }
  }

  void VisitCall(ir::Value v) {
    const ir::Value call = graph_.node(v).op == ir::Op::kCall ? v : graph_.node(v).inputs[0];
    state_.NoteReaders(v, state_.task[call]);
    if (call != v) return;
    for (const ir::Value operand : graph_.node(v).inputs) state_.RequireStored(operand, state_.task[v]);
  }

  // Its operands are views of what lies in memory.
  void VisitMatmul(ir::Value v) {
    const int task = state_.task[v];
    state_.NoteReaders(v, task);
    const Product product = ProductOfMatrices(graph_, state_.result.concats, state_.factors, v);
    for (const Matrix* operand : {&product.x, &product.y}) state_.RequireStored(operand->base, task);
    if (product.bias.has_value()) state_.RequireStored(product.bias->base, task);
  }

  // The same.
  void VisitAttend(ir::Value v) {
    state_.NoteReaders(v, state_.task[v]);
    for (const Matrix& operand : AttentionOf(graph_, state_.result.concats, state_.factors, v).operands)
      state_.RequireStored(operand.base, state_.task[v]);
  }

  // Whoever reads the whole comes after all that write a part of it.
  void VisitConcat(ir::Value v) {
    const Readers readers = state_.readers[v];
    for (const ir::Value operand : graph_.node(v).inputs) {
      for (const Readers::InGroup& reader : readers.groups)
        state_.RequireStored(operand, state_.GroupTask(reader.group));
      for (const int task : readers.tasks) state_.RequireStored(operand, task);
      state_.readers[operand].stored = true;
    }
  }

  void VisitView(ir::Value v) {
    const ir::Node& node = graph_.node(v);
    const Readers readers = state_.readers[v];
    if (node.op == ir::Op::kReshape && readers.stored && !state_.result.concats.IsPlaced(v)) {
      Readers& input = state_.readers[node.inputs[0]];  // the same bytes
      input.stored = true;
      input.tasks.insert(input.tasks.end(), readers.tasks.begin(), readers.tasks.end());
    } else if (readers.stored) {
      StoreInNewGroup(&state_, v);
    }
    for (const Readers::InGroup& reader : readers.groups) state_.ReadInput(reader, v, 0);
  }

  void VisitCompute(ir::Value v) {
    for (Readers::InGroup& reader : state_.readers[v].groups) {
      if (reader.broadcast == 0) continue;
      const Group& group = state_.result.groups[reader.group];
      if (!IsRepeated(group, group.maps[reader.map]) || BecomesRowNumber(v, reader)) reader.broadcast = 0;
    }
    const std::vector<int> groups = state_.readers[v].Groups();
    if (!state_.readers[v].stored && groups.size() == 1) {
      if (const absl::string_view rule = WhyStoredForOne(state_, v, groups[0]); !rule.empty()) {
        state_.NoteRefusal(v, groups[0], rule);
        return StoreInNewGroup(&state_, v);
      }
    }
    if (IsComputedAgain(v, groups) || IsStoredByReader(v, groups) || JoinSibling(&state_, v)) return;
    StoreInNewGroup(&state_, v);
  }

  // Whoever reads it computes it.
  bool IsComputedAgain(ir::Value v, const std::vector<int>& groups) {
    if (state_.readers[v].stored) return false;
    const absl::string_view rule = WhyComputedAgain(state_, v, groups);
    if (rule.empty()) return false;
    for (const int group : groups) {
      const absl::string_view refusal = WhyNotComputed(state_, v, group);
      if (refusal.empty()) continue;
      state_.NoteRefusal(v, group, refusal);
      return false;
    }
    for (const int group : groups) {
      if (state_.Fit(v, group)) continue;
      state_.NoteRefusal(v, group, "loops_do_not_fit");
      return false;
    }
    for (const int group : groups) {
      state_.NoteComputed(v, group, rule);
      state_.Compute(v, group);
    }
    return true;
  }

  // One reader computes it, and stores it for the others.
  bool IsStoredByReader(ir::Value v, const std::vector<int>& groups) {
    for (const int group : ReducingFirst(v, groups)) {
      absl::string_view rule = WhyNotStored(state_, v, group);
      if (rule.empty() && !TakesLoops(v, group)) rule = "loops_do_not_fit";
      if (rule.empty()) {
        StoreIn(&state_, v, group, state_.readers[v].MapIn(group));
        return true;
      }
      state_.NoteRefusal(v, group, rule);
    }
    return false;
  }

  // Gives the group what it needs to store the value; leaves it as it is if it cannot.
  bool TakesLoops(ir::Value v, int index) {
    Group& group = state_.result.groups[index];
    Group before = group;
    if (state_.Fit(v, index) &&
        MeetsEachOnce(group, group.maps[state_.readers[v].MapIn(index)], graph_.type(v).dims, state_.factors))
      return true;
    group = std::move(before);
    return false;
  }

  // What follows from a reduction is best made where others are made in the same walk: mean and variance, say.
  std::vector<int> ReducingFirst(ir::Value v, std::vector<int> groups) const {
    if (state_.look.reduction_behind[v] == ir::kNoValue) return groups;
    std::stable_partition(groups.begin(), groups.end(),
                          [&](int group) { return state_.result.groups[group].shape != Group::Shape::kMap; });
    return groups;
  }

  // A number derived from a reduction, like 1 / sqrt(variance + eps), and broadcast back over the
  // reduced dims: the group takes the reduction's loops now, so that the number is computed once a
  // row.
  bool BecomesRowNumber(ir::Value v, const Readers::InGroup& reader) {
    const ir::Value reduction = state_.look.reduction_behind[v];
    Group& group = state_.result.groups[reader.group];
    if (reduction == ir::kNoValue || group.shape != Group::Shape::kMap) return false;
    if (ReductionShape(graph_, reduction) != Group::Shape::kRows) return false;
    return FitReduction(graph_, state_.factors, state_.options, reduction, reader.map, group) &&
           !IsRepeated(group, group.maps[reader.map]);
  }

  PartitionState state_;
  const ir::Graph& graph_;
};

}  // namespace

Partition MakePartition(const ir::Graph& graph, const Concats& concats, const Factors& factors,
                        const CompileOptions& options, std::vector<Reason>* reasons) {
  return Partitioner(graph, concats, factors, options, reasons).Run();
}

}  // namespace torch_lazy::codegen
