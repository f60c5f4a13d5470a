// SPDX-License-Identifier: Apache-2.0
#include "codegen/steps/storage_plan.h"

#include <algorithm>

#include "base/check.h"
#include "base/pace.h"

namespace torch_lazy::codegen {
namespace {

// May the group write `written` into the buffer it reads as `read`? Only if it reads each element
// just where it writes it, and never after that: what it reads again in a later stage must not have
// changed.
bool MayOverwrite(const Body& body, ir::Value read, ir::Value written) {
  const bool is_read =
      std::any_of(body.slots.begin(), body.slots.end(), [&](const Slot& s) { return !s.written && s.value == read; });
  if (!is_read) return true;  // its memory is taken, and it is a put's
  int last_stage = 0;
  for (const Expression& e : body.expressions) last_stage = std::max(last_stage, e.depth);
  const Address* store = nullptr;
  for (const Store& s : body.stores) {
    const Address& address = body.addresses[s.address];
    if (body.slots[address.slot].value != written) continue;
    if (body.expressions[s.expression].depth != last_stage) return false;
    store = &address;
  }
  LAZY_CHECK(store != nullptr, "value ", written, " is not stored");
  for (const Expression& e : body.expressions) {
    if (e.kind != Expression::Kind::kLoad) continue;
    const Address& address = body.addresses[e.address];
    const Slot& slot = body.slots[address.slot];
    if (slot.value == read && !(address.index == store->index && slot.offset == body.slots[store->slot].offset))
      return false;
  }
  return true;
}

class StoragePlanner {
 public:
  StoragePlanner(const ir::Graph& graph, const Partition& partition, const std::vector<Body>& bodies, Tasks* tasks)
      : graph_(graph), partition_(partition), bodies_(bodies), tasks_(tasks) {}

  StoragePlan Plan() {
    plan_.buffer_of.assign(graph_.nodes.size(), -1);
    AddParams();
    for (size_t k = 0; k < graph_.outputs.size(); ++k) {
      PlaceOutput(static_cast<int>(k));
      base::GiveWay();
    }
    for (ir::Value v = static_cast<ir::Value>(graph_.nodes.size()) - 1; v >= 0; --v) {
      if (IsConcat(v)) PlaceParts(v);
    }
    FindLastUses();
    for (ir::Value v = 0; v < static_cast<ir::Value>(graph_.nodes.size()); ++v) {
      if (tasks_->writer[v] >= 0 && plan_.buffer_of[v] < 0) PlaceTemporary(v);
    }
    for (const Overwrite& overwrite : overwrites_) Order(overwrite);
    return std::move(plan_);
  }

 private:
  struct Overwrite {
    ir::Value before, after;  // two values of one buffer
    int output;               // for which the buffer was chosen; -1: for a call that works in place
  };

  void AddParams() {
    for (ir::Value v = 0; v < static_cast<ir::Value>(graph_.nodes.size()); ++v) {
      const ir::Node& node = graph_.node(v);
      if (node.op != ir::Op::kParam) continue;
      params_.resize(std::max<size_t>(params_.size(), node.attrs.index + 1), ir::kNoValue);
      params_[node.attrs.index] = v;
      plan_.buffer_of[v] = NewBuffer(BufferSpec::Kind::kParam, static_cast<int32_t>(node.attrs.index), node.type);
    }
  }

  int32_t NewBuffer(BufferSpec::Kind kind, int32_t index, const ir::Type& type) {
    plan_.buffers.push_back({kind, index, type});
    return static_cast<int32_t>(plan_.buffers.size()) - 1;
  }

  void PlaceOutput(int k) {
    const ir::Output& output = graph_.outputs[k];
    const ir::Value value = partition_.StoredAs(graph_, output.value);
    if (graph_.node(value).op == ir::Op::kParam) return;  // written back to itself
    if (output.into < 0) {
      Place(value, NewBuffer(BufferSpec::Kind::kOutput, k, graph_.type(output.value)), ir::kNoValue, k);
    } else {
      Place(value, plan_.buffer_of[params_[output.into]], params_[output.into], k);
    }
  }

  bool IsConcat(ir::Value v) const { return ir::Info(graph_.node(v).op).kind == ir::Kind::kConcat; }

  // The parts of a concat that is computed lie in its buffer.
  void PlaceParts(ir::Value whole) {
    bool is_computed = true;
    ForEachPart(graph_, whole, [&](ir::Value part) { is_computed = is_computed && tasks_->writer[part] >= 0; });
    if (!is_computed) return;
    int32_t& buffer = plan_.buffer_of[whole];
    if (buffer < 0) buffer = NewBuffer(BufferSpec::Kind::kTemp, -1, graph_.type(whole));
    for (const ir::Value part : graph_.node(whole).inputs) plan_.buffer_of[part] = buffer;
  }

  // The operand whose buffer a call's result, or a put, takes: its place in the call and the stored value; -1
  // if it takes none.
  int OperandOf(ir::Value result, ir::Value* call, ir::Value* operand) const {
    const ir::Node& node = graph_.node(result);
    if (node.op == ir::Op::kPut) {
      *call = result;
      *operand = partition_.StoredAs(graph_, node.inputs[0]);
      return 0;
    }
    if (ir::Info(node.op).kind != ir::Kind::kCall) return -1;
    *call = node.op == ir::Op::kCall ? result : node.inputs[0];
    const int64_t index = node.op == ir::Op::kCall ? 0 : node.attrs.index;
    const int place = static_cast<int>(graph_.node(*call).attrs.inout[index]);
    if (place >= 0) *operand = partition_.StoredAs(graph_, graph_.node(*call).inputs[place]);
    return place;
  }

  // `value` gets the buffer, whose bytes were `before`'s so far.
  void Place(ir::Value value, int32_t buffer, ir::Value before, int output) {
    ir::Value call = ir::kNoValue, operand = ir::kNoValue;
    const int place = OperandOf(value, &call, &operand);
    const bool is_call = place >= 0 || ir::Info(graph_.node(value).op).kind == ir::Kind::kCall;
    const bool is_own = (is_call && place < 0) || IsConcat(value);
    if (plan_.buffer_of[value] >= 0 || (is_own && before != ir::kNoValue)) {
      return AskForCopy(output);  // taken, or memory of its own, which cannot be a parameter's
    }
    plan_.buffer_of[value] = buffer;
    if (!is_call || place < 0) {
      if (before != ir::kNoValue) overwrites_.push_back({before, value, output});
      return;
    }
    if (operand != before) {
      if (IsConcat(operand) || plan_.buffer_of[operand] >= 0) return AskForCopy(call, place);
      Place(operand, buffer, before, output);
    }
    overwrites_.push_back({operand, value, -1});
  }

  // Values whose last use is by a group that may write one of its own into their place.
  void FindLastUses() {
    next_.assign(graph_.nodes.size(), ir::kNoValue);
    previous_.assign(graph_.nodes.size(), ir::kNoValue);
    for (const Overwrite& overwrite : overwrites_) previous_[overwrite.after] = overwrite.before;
    for (size_t u = 0; u < tasks_->tasks.size(); ++u) {
      const int group = tasks_->tasks[u].group;
      if (group < 0) continue;
      for (const Slot& written : bodies_[group].slots) {
        base::GiveWay();
        ir::Value put = ir::kNoValue, operand = ir::kNoValue;
        if (!written.written || previous_[written.value] != ir::kNoValue ||
            OperandOf(written.value, &put, &operand) >= 0)
          continue;
        const bool is_placed = partition_.concats.IsPlaced(written.value);
        const ir::Value whole = is_placed ? partition_.concats.place_of[written.value].whole : written.value;
        if (is_placed && !BeginsAt(whole, static_cast<int>(u))) continue;
        for (const Slot& read : bodies_[group].slots) {
          if (read.written || !EndsAt(read.value, static_cast<int>(u)) ||
              !(graph_.type(read.value) == graph_.type(whole)) ||
              !MayOverwrite(bodies_[group], read.value, written.value)) {
            continue;
          }
          next_[read.value] = written.value;
          previous_[written.value] = read.value;
          if (is_placed) plan_.buffer_of[read.value] = plan_.buffer_of[whole];
          break;
        }
      }
    }
  }

  // True if the concat is a temporary of which the task writes the first part, before all others.
  bool BeginsAt(ir::Value whole, int task) const {
    const int32_t buffer = plan_.buffer_of[whole];
    bool begins =
        !partition_.concats.IsPlaced(whole) && buffer >= 0 && plan_.buffers[buffer].kind == BufferSpec::Kind::kTemp;
    ForEachPart(graph_, whole,
                [&](ir::Value part) { begins = begins && tasks_->order.Reaches(task, tasks_->writer[part]); });
    return begins;
  }

  // True if the value is a temporary with bytes of its own that the task alone reads, and that nothing takes over yet.
  bool EndsAt(ir::Value value, int task) const {
    ir::Value call = ir::kNoValue, operand = ir::kNoValue;
    return tasks_->writer[value] >= 0 && plan_.buffer_of[value] < 0 && next_[value] == ir::kNoValue &&
           OperandOf(value, &call, &operand) < 0 && tasks_->readers[value].size() == 1 &&
           tasks_->readers[value][0] == task;
  }

  void PlaceTemporary(ir::Value value) {
    ir::Value call = ir::kNoValue, operand = ir::kNoValue;
    const int place = OperandOf(value, &call, &operand);
    if (place < 0) {
      // All that follow each other in one place get it together: a later one may stand before in the program.
      while (previous_[value] != ir::kNoValue && plan_.buffer_of[previous_[value]] < 0) value = previous_[value];
      ir::Value end = value;
      while (next_[end] != ir::kNoValue) end = next_[end];
      int32_t buffer = plan_.buffer_of[end];
      if (previous_[value] != ir::kNoValue) buffer = plan_.buffer_of[previous_[value]];
      if (buffer < 0) buffer = NewBuffer(BufferSpec::Kind::kTemp, -1, graph_.type(value));
      for (; value != ir::kNoValue; value = next_[value]) {
        if (plan_.buffer_of[value] < 0) plan_.buffer_of[value] = buffer;
      }
      return;
    }
    const int32_t buffer = plan_.buffer_of[operand];
    plan_.buffer_of[value] = buffer;
    if (IsConcat(operand) || plan_.buffers[buffer].kind != BufferSpec::Kind::kTemp) return AskForCopy(call, place);
    overwrites_.push_back({operand, value, -1});
  }

  // Whoever else reads the old value comes before the new one's writer.
  void Order(const Overwrite& overwrite) {
    const int writer = tasks_->writer[overwrite.after];
    for (const int reader : tasks_->readers[overwrite.before]) {
      const bool is_writer = reader == writer;
      const int group = tasks_->tasks[writer].group;
      const bool allowed =
          !is_writer  ? !tasks_->order.Reaches(writer, reader)
          : group < 0 ? ir::Info(graph_.node(overwrite.after).op).kind == ir::Kind::kCall && IsOneOperand(overwrite)
                      : MayOverwrite(bodies_[group], overwrite.before, overwrite.after);
      if (allowed) {
        tasks_->order.AddEdge(reader, writer);
        continue;
      }
      if (overwrite.output >= 0) return AskForCopy(overwrite.output);
      ir::Value call = ir::kNoValue, operand = ir::kNoValue;
      const int place = OperandOf(overwrite.after, &call, &operand);
      return AskForCopy(call, place);
    }
  }

  // A call that also reads the old value by another operand would see what it has written.
  bool IsOneOperand(const Overwrite& overwrite) const {
    ir::Value call = ir::kNoValue, operand = ir::kNoValue;
    OperandOf(overwrite.after, &call, &operand);
    const auto& inputs = graph_.node(call).inputs;
    return std::count_if(inputs.begin(), inputs.end(),
                         [&](ir::Value input) { return partition_.StoredAs(graph_, input) == overwrite.before; }) == 1;
  }

  void AskForCopy(int output) {
    std::vector<int>& outputs = plan_.missing_copies.outputs;
    if (std::find(outputs.begin(), outputs.end(), output) == outputs.end()) outputs.push_back(output);
  }

  void AskForCopy(ir::Value call, int operand) {
    auto& operands = plan_.missing_copies.operands;
    const std::pair<ir::Value, int> place(call, operand);
    if (std::find(operands.begin(), operands.end(), place) == operands.end()) operands.push_back(place);
  }

  const ir::Graph& graph_;
  const Partition& partition_;
  const std::vector<Body>& bodies_;
  Tasks* const tasks_;
  StoragePlan plan_;
  std::vector<ir::Value> params_;  // by index
  std::vector<Overwrite> overwrites_;
  std::vector<ir::Value> next_, previous_;  // in the same buffer, where one value's last use makes the other
};

}  // namespace

StoragePlan PlanStorage(const ir::Graph& graph, const Partition& partition, const std::vector<Body>& bodies,
                        Tasks* tasks) {
  return StoragePlanner(graph, partition, bodies, tasks).Plan();
}

}  // namespace torch_lazy::codegen
