// SPDX-License-Identifier: Apache-2.0
#include "codegen/partition/partition.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "base/check.h"
#include "base/pace.h"
#include "codegen/layout/matrix.h"
#include "codegen/partition/dependencies.h"
#include "codegen/partition/elementwise_reads.h"
#include "codegen/partition/group_loops.h"
#include "codegen/partition/lifetime.h"
#include "codegen/partition/look_ahead.h"
#include "codegen/partition/op_cost.h"
#include "codegen/partition/readers.h"
#include "codegen/partition/reduction_fit.h"
#include "codegen/partition/value_inputs.h"
#include "codegen/partition/worth_storing.h"
#include "codegen/plan/seen_sizes.h"

namespace torch_lazy::codegen {
namespace {

constexpr size_t kMostComputed = 96;  // nodes in a group: larger kernels lack registers
constexpr size_t kMostStored = 6;     // by a GPU's map
constexpr int kMostMaps = 2;          // at which one node is computed in one group
constexpr int kMostBroadcast = 3;     // ops in a row, computed again for each place

class Partitioner {
 public:
  Partitioner(const ir::Graph& graph, const Concats& concats, const Factors& factors, const CompileOptions& options)
      : graph_(graph),
        look_(MakeLookAhead(graph)),
        lifetimes_(MakeLifetimes(graph, options)),
        worth_({graph_, look_, lifetimes_, options.target, readers_, result_.groups, call_of_task_}),
        factors_(factors),
        options_(options),
        readers_(graph_.nodes.size()),
        share_sums_(graph_.nodes.size()),
        task_(graph_.nodes.size(), -1) {
    result_.home.assign(graph_.nodes.size(), -1);
    result_.concats = concats;
  }

  Partition Run() {
    AddCalls();
    for (const ir::Output& output : graph_.outputs) readers_[output.value].stored = true;
    for (auto v = static_cast<ir::Value>(graph_.nodes.size()); v-- > 0; base::GiveWay()) Visit(v);
    return std::move(result_);
  }

 private:
  // Calls keep their order: they may draw random numbers or write to what nobody here sees.
  void AddCalls() {
    int previous = -1;
    for (size_t v = 0; v < graph_.nodes.size(); ++v) {
      if (ir::Info(graph_.nodes[v].op).kind == ir::Kind::kMatmul) task_[v] = AddCallTask(v);
      if (graph_.nodes[v].op != ir::Op::kCall) continue;
      task_[v] = AddCallTask(v);
      if (previous >= 0) dependencies_.AddEdge(previous, task_[v]);
      previous = task_[v];
    }
  }

  int AddCallTask(size_t v) {
    const int task = dependencies_.AddTask();
    call_of_task_[task] = static_cast<ir::Value>(v);
    return task;
  }

  void Visit(ir::Value v) {
    const ir::Node& node = graph_.node(v);
    for (const ir::Value sum : share_sums_[v]) PlaceShareSum(sum);
    const Readers& readers = readers_[v];
    const bool is_read = readers.stored || !readers.groups.empty();
    switch (ir::Info(node.op).kind) {
      case ir::Kind::kLeaf:
        if (node.op != ir::Op::kParam && readers.stored) NewGroup(v);
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
        if (is_read) share_sums_[node.inputs[0]].push_back(v);
        return;
      case ir::Kind::kConcat:
        if (is_read) VisitConcat(v);
        return;
      case ir::Kind::kMatmul:
        return VisitMatmul(v);
    }
  }

  void VisitCall(ir::Value v) {
    const ir::Value call = graph_.node(v).op == ir::Op::kCall ? v : graph_.node(v).inputs[0];
    NoteReaders(v, task_[call]);
    if (call != v) return;
    for (const ir::Value operand : graph_.node(v).inputs) RequireStored(operand, task_[v]);
  }

  // Its operands are views of what lies in memory.
  void VisitMatmul(ir::Value v) {
    NoteReaders(v, task_[v]);
    const Product product = ProductOfMatrices(graph_, result_.concats, factors_, v);
    for (const Matrix* operand : {&product.x, &product.y}) RequireStored(operand->base, task_[v]);
    if (product.bias.has_value()) RequireStored(product.bias->base, task_[v]);
  }

  // Whoever reads the whole comes after all that write a part of it.
  void VisitConcat(ir::Value v) {
    const Readers readers = readers_[v];
    for (const ir::Value operand : graph_.node(v).inputs) {
      for (const Readers::InGroup& reader : readers.groups) RequireStored(operand, GroupTask(reader.group));
      for (const int task : readers.tasks) RequireStored(operand, task);
      readers_[operand].stored = true;
    }
  }

  void VisitView(ir::Value v) {
    const ir::Node& node = graph_.node(v);
    const Readers readers = readers_[v];
    if (node.op == ir::Op::kReshape && readers.stored && !result_.concats.IsPlaced(v)) {
      Readers& input = readers_[node.inputs[0]];  // the same bytes
      input.stored = true;
      input.tasks.insert(input.tasks.end(), readers.tasks.begin(), readers.tasks.end());
    } else if (readers.stored) {
      NewGroup(v);
    }
    for (const Readers::InGroup& reader : readers.groups) ReadInput(reader, v, 0);
  }

  void VisitCompute(ir::Value v) {
    for (Readers::InGroup& reader : readers_[v].groups) {
      if (reader.broadcast == 0) continue;
      const Group& group = result_.groups[reader.group];
      if (!IsRepeated(group, group.maps[reader.map]) || BecomesRowNumber(v, reader)) reader.broadcast = 0;
    }
    const Readers readers = readers_[v];
    const std::vector<int> groups = readers.Groups();
    if (!readers.stored && groups.size() == 1 && worth_.HoldsMemory(v, groups[0])) return NewGroup(v);
    if (!readers.stored &&
        (groups.size() == 1 || IsCheap(graph_, look_, options_.target, v, groups.size()) ||
         worth_.IsHeldAnyway(v, groups) || worth_.MovesMoreIfStored(v, groups) || worth_.IsFoldedAgain(v, groups))) {
      const bool all = std::all_of(groups.begin(), groups.end(), [&](int group) { return CanCompute(v, group); });
      if (all && std::all_of(groups.begin(), groups.end(), [&](int group) { return Fit(v, group); })) {
        for (const int group : groups) Compute(v, group);
        return;
      }
    }
    for (const int group : ReducingFirst(v, groups)) {
      if (IsSingleResult(v) || BelongsToRows(v, group)) continue;
      if (IsFull(result_.groups[group]) || !CanCompute(v, group) || !CanStore(v, group)) continue;
      Group before = result_.groups[group];
      if (!Fit(v, group) || !MeetsEachOnce(result_.groups[group], result_.groups[group].maps[readers.MapIn(group)],
                                           graph_.type(v).dims, factors_)) {
        result_.groups[group] = std::move(before);
        continue;
      }
      StoreIn(v, group, readers.MapIn(group));
      return;
    }
    if (!JoinSibling(v)) NewGroup(v);
  }

  // What follows from a reduction is best made where others are made in the same walk: mean and variance, say.
  std::vector<int> ReducingFirst(ir::Value v, std::vector<int> groups) const {
    if (look_.reduction_behind[v] == ir::kNoValue) return groups;
    std::stable_partition(groups.begin(), groups.end(),
                          [&](int group) { return result_.groups[group].shape != Group::Shape::kMap; });
    return groups;
  }

  // A GPU's group that reads all that a stored value is made of need not read the value, too: where a
  // ReLU was open, say, follows from what the gradient of the normalisation before it reads.
  void ComputeFromWhatIsRead(ir::Value v, int home) {
    if (options_.target != Target::kCuda) return;
    for (const int group : readers_[v].Groups()) {
      if (group == home || !CanCompute(v, group) || !worth_.MakesFromWhatItReads(v, group)) continue;
      Compute(v, group);
      auto& readers = readers_[v].groups;
      readers.erase(std::remove_if(readers.begin(), readers.end(),
                                   [&](const Readers::InGroup& reader) { return reader.group == group; }),
                    readers.end());
    }
  }

  // Columns run across rows: a value made with reductions along these (a normalisation's gradient,
  // say) is better stored by a group of their own, which computes them too.
  bool BelongsToRows(ir::Value v, int group) const {
    const ir::Value reduction = look_.reduction_behind[v];
    return result_.groups[group].shape == Group::Shape::kColumns && reduction != ir::kNoValue &&
           ReductionShape(graph_, reduction) == Group::Shape::kRows;
  }

  // A sum of everything, which other groups wait for: they need not wait for more than that.
  bool IsSingleResult(ir::Value v) const {
    const ir::Node& node = graph_.node(v);
    return ir::Info(node.op).kind == ir::Kind::kReduce && factors_.Of(node.type.dims).empty();
  }

  // Of many results a GPU's kernel has few threads at once.
  bool IsFull(const Group& group) const {
    const bool is_wide =
        options_.target == Target::kCuda && group.shape == Group::Shape::kMap && group.roots.size() >= kMostStored;
    return is_wide || group.computed.size() >= kMostComputed;
  }

  // A large map on a GPU that computes about as long as memory moves: whatever shares its reads, but no number, would
  // run no sooner with it, and with fewer threads at once (chains with a tanh and a sigmoid each on an H200: 184 us
  // alone, 231 each six at a time).
  bool IsBusy(const Group& group, ir::Value v) const {
    constexpr double kLarge = 64 << 20;  // bytes; more than its cache holds
    if (options_.target != Target::kCuda || group.shape != Group::Shape::kMap ||
        SeenBytes(graph_.type(v), options_.seen_extents) < kLarge)
      return false;
    return std::any_of(group.computed.begin(), group.computed.end(), [&](ir::Value computed) {
      return (ir::Info(graph_.node(computed).op).traits & ir::kTranscendental) != 0;
    });
  }

  // A group that reads what the node reads, at the same places, can compute it at little cost,
  // though neither needs the other: the sums of a gradient and of its product with something, say.
  bool JoinSibling(ir::Value v) {
    const ir::Node& node = graph_.node(v);
    if (ir::Info(node.op).kind == ir::Kind::kIndexed) return false;
    const std::vector<int> own_readers = readers_[v].Groups();
    const ElementwiseReads elementwise(graph_, v);
    for (const ElementwiseReads::Read& read : elementwise.reads()) {
      const auto candidates = readers_[read.value].groups;
      for (const Readers::InGroup& candidate : candidates) {
        const bool is_reader = std::find(own_readers.begin(), own_readers.end(), candidate.group) != own_readers.end();
        Group& group = result_.groups[candidate.group];
        if (is_reader || IsFull(group) || IsBusy(group, v)) continue;
        const std::optional<IndexMap> map = MapOverSameLoops(graph_, factors_, v, group);
        if (!map.has_value()) continue;
        const bool is_alike = ir::Info(node.op).kind == ir::Kind::kReduce || group.shape == Group::Shape::kMap;
        if (is_alike ? graph_.type(read.value).dims != graph_.type(graph_.node(v).inputs[0]).dims
                     : !CanJoinReduction(v, candidate.group))
          continue;
        const int id = group.Intern(*map);
        const std::optional<IndexMap> at = elementwise.MapOf(read, factors_, group, id);
        if (!at.has_value() || group.Intern(*at) != candidate.map) continue;
        if (!NothingBetween(v, candidate.group)) continue;
        readers_[v].groups.push_back({candidate.group, id, 0});
        StoreIn(v, candidate.group, id);
        return true;
      }
    }
    return false;
  }

  // A group that reads what is summed up, or what that is made of, row by row makes the sums as
  // well.
  void PlaceShareSum(ir::Value v) {
    const ElementwiseReads elementwise(graph_, v);
    std::vector<ElementwiseReads::Read> reads = elementwise.reads();
    std::sort(reads.begin(), reads.end(), [](const ElementwiseReads::Read& a, const ElementwiseReads::Read& b) {
      return a.value > b.value;  // what is made last has the fewest other readers
    });
    for (const ElementwiseReads::Read& read : reads) {
      const auto candidates = readers_[read.value].groups;
      for (const Readers::InGroup& candidate : candidates) {
        if (JoinRows(v, elementwise, read, candidate)) return;
      }
    }
    const int index = AddGroup();
    Group& group = result_.groups[index];
    const ir::Dims& dims = graph_.type(graph_.node(v).inputs[0]).dims;
    for (const ir::Extent extent : factors_.Of(dims))
      group.variables.push_back({Variable::Kind::kOuter, ProductOf({extent})});
    const std::optional<IndexMap> map = FitShareSum(graph_, factors_, options_, v, group);
    LAZY_CHECK(map.has_value(), "a group of its own fits a sum of shares");
    StoreShareSum(v, index, *map);
  }

  bool JoinRows(ir::Value v, const ElementwiseReads& elementwise, const ElementwiseReads::Read& read,
                const Readers::InGroup& candidate) {
    Group& group = result_.groups[candidate.group];
    if (group.computed.size() >= kMostComputed || !NothingBetween(v, candidate.group)) return false;
    Group before = group;
    const std::optional<IndexMap> map = FitShareSum(graph_, factors_, options_, v, group);
    if (map.has_value()) {
      const std::optional<IndexMap> at = elementwise.MapOf(read, factors_, group, group.Intern(*map));
      if (at.has_value() && group.Intern(*at) == candidate.map) {
        StoreShareSum(v, candidate.group, *map);
        return true;
      }
    }
    group = std::move(before);
    return false;
  }

  void StoreShareSum(ir::Value v, int group, const IndexMap& map) {
    const int id = result_.groups[group].Intern(map);
    readers_[v].groups.push_back({group, id, 0});
    StoreIn(v, group, id);
  }

  // A number derived from a reduction, like 1 / sqrt(variance + eps), and broadcast back over the
  // reduced dims: the group takes the reduction's loops now, so that the number is computed once a
  // row.
  bool BecomesRowNumber(ir::Value v, const Readers::InGroup& reader) {
    const ir::Value reduction = look_.reduction_behind[v];
    Group& group = result_.groups[reader.group];
    if (reduction == ir::kNoValue || group.shape != Group::Shape::kMap) return false;
    if (ReductionShape(graph_, reduction) != Group::Shape::kRows) return false;
    return FitReduction(graph_, factors_, options_, reduction, reader.map, group) &&
           !IsRepeated(group, group.maps[reader.map]);
  }

  bool CanCompute(ir::Value v, int group_index) const {
    const Group& group = result_.groups[group_index];
    if (group.computed.size() >= kMostComputed) return false;
    int maps = 0;
    for (const Readers::InGroup& reader : readers_[v].groups) {
      if (reader.group != group_index) continue;
      ++maps;
      if (reader.broadcast > kMostBroadcast) return false;
      if (reader.broadcast > 0 && IsCostly(graph_.node(v))) return false;
    }
    return maps <= (ir::Info(graph_.node(v).op).kind == ir::Kind::kReduce ? 1 : kMostMaps);
  }

  // Gives the group what the node needs, if it can.
  bool Fit(ir::Value v, int group) {
    if (ir::Info(graph_.node(v).op).kind != ir::Kind::kReduce) return true;
    return FitReduction(graph_, factors_, options_, v, readers_[v].MapIn(group), result_.groups[group]);
  }

  // No other reader may have to run before the group.
  bool CanStore(ir::Value v, int group) const {
    const Readers& readers = readers_[v];
    if (IsReadByShares(result_.groups[group], result_.groups[group].maps[readers.MapIn(group)])) return false;
    if (std::any_of(readers.groups.begin(), readers.groups.end(), [&](const Readers::InGroup& reader) {
          return reader.group == group && reader.map != readers.MapIn(group);
        })) {
      return false;
    }
    return NothingBetween(v, group);
  }

  bool NothingBetween(ir::Value v, int group) const {
    const Readers& readers = readers_[v];
    const int task = group_tasks_[group];
    for (const int other : readers.tasks) {
      if (dependencies_.Reaches(other, task)) return false;
    }
    for (const Readers::InGroup& reader : readers.groups) {
      if (reader.group != group && dependencies_.Reaches(group_tasks_[reader.group], task)) return false;
    }
    return true;
  }

  // May a number made of what the group reduces be stored by the group: at the time that the program makes it, and
  // without replacing a parameter, by this or by another root, that somebody who waits for the group still reads? That
  // would have to be copied.
  bool CanJoinReduction(ir::Value v, int group) const {
    if (worth_.CallsBefore(group) > lifetimes_.calls_before[v]) return false;
    const auto is_awaited = [&](ir::Value value) {
      const Readers& readers = readers_[value];
      return !readers.tasks.empty() ||
             std::any_of(readers.groups.begin(), readers.groups.end(),
                         [&](const Readers::InGroup& reader) { return reader.group != group; });
    };
    const auto& roots = result_.groups[group].roots;
    return std::none_of(roots.begin(), roots.end(), [&](const Group::Root& root) {
      return (is_awaited(v) && look_.replaces_shared[root.value]) ||
             (look_.replaces_shared[v] && is_awaited(root.value));
    });
  }

  int AddGroup() {
    result_.groups.emplace_back();
    group_tasks_.push_back(dependencies_.AddTask());
    return static_cast<int>(result_.groups.size()) - 1;
  }

  void NewGroup(ir::Value v) {
    const ir::Node& node = graph_.node(v);
    const int index = AddGroup();
    Group& group = result_.groups[index];
    for (const ir::Extent extent : factors_.Of(node.type.dims)) {
      group.variables.push_back({Variable::Kind::kOuter, ProductOf({extent})});
    }
    const int map = group.Intern(IdentityMap(node.type.dims, factors_, 0));
    if (ir::Info(node.op).kind == ir::Kind::kReduce) {
      LAZY_CHECK(FitReduction(graph_, factors_, options_, v, map, group), "a group of its own fits a reduction");
    }
    readers_[v].groups.push_back({index, map, 0});
    StoreIn(v, index, map);
  }

  // The group computes the value and stores it; whoever else reads it comes after.
  void StoreIn(ir::Value v, int group, int map) {
    ComputeFromWhatIsRead(v, group);
    NoteReaders(v, GroupTask(group));
    result_.groups[group].roots.push_back({v, map});
    result_.home[v] = group;
    Compute(v, group);
  }

  // The node is computed by the group: its inputs are read there.
  void Compute(ir::Value v, int group) {
    result_.groups[group].computed.insert(v);
    const Readers readers = readers_[v];
    for (const Readers::InGroup& reader : readers.groups) {
      if (reader.group != group) continue;
      for (size_t k = 0; k < graph_.node(v).inputs.size(); ++k) ReadInput(reader, v, static_cast<int>(k));
    }
  }

  void ReadInput(const Readers::InGroup& reader, ir::Value v, int input) {
    const ir::Value from = graph_.node(v).inputs[input];
    if (IsCopy(graph_, v)) return RequireStored(from, GroupTask(reader.group));
    Group& group = result_.groups[reader.group];
    const std::optional<IndexMap> map = InputMap(graph_, factors_, group, v, input, reader.map);
    if (!map.has_value()) return RequireStored(from, GroupTask(reader.group));
    const int id = group.Intern(*map);
    Readers& readers = readers_[from];
    const int broadcast = IsRepeated(group, *map) ? reader.broadcast + 1 : 0;
    for (Readers::InGroup& known : readers.groups) {
      if (known.group != reader.group || known.map != id) continue;
      known.broadcast = std::max(known.broadcast, broadcast);
      return;
    }
    readers.groups.push_back({reader.group, id, broadcast});
  }

  void RequireStored(ir::Value v, int task) {
    readers_[v].stored = true;
    readers_[v].tasks.push_back(task);
  }

  // `task` makes the value: it comes before all its readers.
  void NoteReaders(ir::Value v, int task) {
    for (const Readers::InGroup& reader : readers_[v].groups) dependencies_.AddEdge(task, GroupTask(reader.group));
    for (const int reader : readers_[v].tasks) dependencies_.AddEdge(task, reader);
  }

  int GroupTask(int group) const { return group_tasks_[group]; }

  const ir::Graph& graph_;
  const LookAhead look_;
  const Lifetimes lifetimes_;
  const WorthStoring worth_;
  const Factors& factors_;
  const CompileOptions& options_;
  Partition result_;
  Dependencies dependencies_;
  std::vector<Readers> readers_;
  std::vector<absl::InlinedVector<ir::Value, 1>> share_sums_;  // of each value, that are read
  std::vector<int> task_;                                      // of each call and matmul
  absl::flat_hash_map<int, ir::Value> call_of_task_;           // and back
  std::vector<int> group_tasks_;                               // of each group
};

}  // namespace

Partition MakePartition(const ir::Graph& graph, const Concats& concats, const Factors& factors,
                        const CompileOptions& options) {
  return Partitioner(graph, concats, factors, options).Run();
}

}  // namespace torch_lazy::codegen
