// SPDX-License-Identifier: Apache-2.0
#include "codegen/partition/worth_storing.h"

#include <algorithm>

#include "codegen/partition/op_cost.h"
#include "codegen/partition/value_inputs.h"

namespace torch_lazy::codegen {

bool WorthStoring::HoldsMemory(ir::Value v, int group) const {
  return CallsBefore(group) > lifetimes.calls_before[v] && lifetimes.bytes_ending[v] > lifetimes.bytes[v] + kFewBytes;
}

bool WorthStoring::IsHeldAnyway(ir::Value v, const std::vector<int>& by) const {
  const ir::Node& node = graph.node(v);
  if (by.size() > kMostReaders || IsDear(node) || ir::Info(node.op).kind != ir::Kind::kElementwise) return false;
  bool held = false;
  for (const int group : by) {
    if (lifetimes.calls_before[LastRoot(group)] == lifetimes.calls_before[v]) continue;
    held = true;
    if (!ReadsInputsOf(v, group, Price::kNoMemory)) return false;
  }
  return held;
}

bool WorthStoring::MovesMoreIfStored(ir::Value v, const std::vector<int>& by) const {
  if (target != Target::kCuda || IsCostly(graph.node(v)) || ir::Info(graph.node(v).op).kind != ir::Kind::kElementwise)
    return false;
  const std::vector<ir::Value> sources = CheapInputsOf(graph, look, v);
  if (sources.empty()) return false;
  double read = 0, most_read = 0, held = 0;
  for (const int group : by) {
    double read_here = 0;
    for (const ir::Value source : sources)
      read_here += readers[source].Has(group) || MakesFromWhatItReads(source, group) ? 0 : lifetimes.bytes[source];
    read += read_here;
    most_read = std::max(most_read, read_here);
    if (lifetimes.calls_before[LastRoot(group)] != lifetimes.calls_before[v]) held = std::max(held, read_here);
  }
  const auto num_groups = static_cast<double>(by.size());
  return read - most_read < num_groups * lifetimes.bytes[v] && held <= lifetimes.bytes[v];
}

bool WorthStoring::ReadsInputsOf(ir::Value v, int group, Price price) const {
  std::vector<ir::Value> values = {v};
  for (size_t k = 0; k < values.size(); ++k) {
    if (k > kMostSearched || (price == Price::kNothing && IsCostly(graph.node(values[k])))) return false;
    for (const ir::Value input : graph.node(values[k]).inputs) {
      const ir::Kind kind = ir::Info(graph.node(input).op).kind;
      if (readers[input].Has(group)) continue;
      if (kind == ir::Kind::kLeaf) {
        const bool is_read = graph.node(input).op == ir::Op::kParam && !IsLittle(input, v);
        if (price == Price::kNothing && is_read) return false;
        continue;
      }
      if (kind != ir::Kind::kElementwise && kind != ir::Kind::kView) return false;
      if (std::find(values.begin(), values.end(), input) == values.end()) values.push_back(input);
    }
  }
  return true;
}

bool WorthStoring::IsFoldedAgain(ir::Value v, const std::vector<int>& by) const {
  constexpr double kLongRow = 2048;  // elements
  const ir::Value fold = look.reduction_behind[v];
  if (target != Target::kCuda || fold == ir::kNoValue) return false;
  const double length = lifetimes.bytes[graph.node(fold).inputs[0]] / lifetimes.bytes[fold];
  return length > kLongRow && std::all_of(by.begin(), by.end(), [&](int group) {
           return groups[group].shape == Group::Shape::kRows && FoldsFromWhatItReads(v, group);
         });
}

bool WorthStoring::FoldsFromWhatItReads(ir::Value v, int group) const {
  std::vector<ir::Value> values = {v};
  for (size_t k = 0; k < values.size(); ++k) {
    if (k > kMostSearched) return false;
    for (const ir::Value input : graph.node(values[k]).inputs) {
      const ir::Kind kind = ir::Info(graph.node(input).op).kind;
      const bool is_read =
          readers[input].Has(group) || (kind == ir::Kind::kLeaf && graph.node(input).op != ir::Op::kParam);
      if (is_read || std::find(values.begin(), values.end(), input) != values.end()) continue;
      if (kind != ir::Kind::kElementwise && kind != ir::Kind::kView && kind != ir::Kind::kReduce) return false;
      values.push_back(input);
    }
  }
  return true;
}

// A weight, beside what it is applied to.
bool WorthStoring::IsLittle(ir::Value param, ir::Value v) const {
  constexpr double kPart = 1.0 / 16;
  return lifetimes.bytes[param] <= kPart * lifetimes.bytes[v];
}

bool WorthStoring::MakesFromWhatItReads(ir::Value v, int group) const {
  return ir::Info(graph.node(v).op).kind == ir::Kind::kElementwise && ReadsInputsOf(v, group, Price::kNothing);
}

int WorthStoring::CallsBefore(int group) const {
  int calls = lifetimes.calls_before[LastRoot(group)];
  for (const Group::Root& root : groups[group].roots) {
    for (const int task : readers[root.value].tasks) {
      const auto call = call_of_task.find(task);
      if (call != call_of_task.end()) calls = std::min(calls, lifetimes.calls_before[call->second]);
    }
  }
  return calls;
}

ir::Value WorthStoring::LastRoot(int group) const {
  ir::Value last = 0;
  for (const Group::Root& root : groups[group].roots) last = std::max(last, root.value);
  return last;
}

}  // namespace torch_lazy::codegen
