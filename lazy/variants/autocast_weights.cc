// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/autocast_weights.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "codegen/plan/plan.h"
#include "ir/builder.h"

namespace torch_lazy::lazy {
namespace {

// A parameter in a narrower type, seen otherwise perhaps.
struct Narrow {
  ir::Value param;
  ir::Type type;   // of all of it
  ir::Value next;  // what is written to the parameter
  friend bool operator==(const Narrow& a, const Narrow& b) { return a.param == b.param && a.type == b.type; }
};

bool IsView(const ir::Node& node) { return node.op == ir::Op::kPermute || node.op == ir::Op::kReshape; }

// Products of lengths that are no multiples of it may be padded, by who narrows their operands
// (codegen/passes/pad_matmuls).
bool MayBePadded(const ir::Type& type, const std::vector<int64_t>& symbols) {
  const auto is_odd = [&](ir::Extent extent) { return extent.Value(symbols) % codegen::PaddedExtent::kMultiple != 0; };
  return type.rank() <= 2 && std::ranges::any_of(type.dims, is_odd);
}

// The value if it is one of a parameter that the graph writes at its end, in the same dims.
std::optional<Narrow> NarrowOf(const ir::Graph& graph, const ir::Node& node, const std::vector<int64_t>& symbols) {
  if (node.op != ir::Op::kCast || !ir::IsFloat(node.type.dtype)) return std::nullopt;
  ir::Value wide = node.inputs[0];
  while (IsView(graph.node(wide))) wide = graph.node(wide).inputs[0];
  const ir::Node& param = graph.node(wide);
  if (param.op != ir::Op::kParam || !ir::IsFloat(param.type.dtype) || MayBePadded(param.type, symbols))
    return std::nullopt;
  if (ir::SizeBytes(node.type.dtype) >= ir::SizeBytes(param.type.dtype)) return std::nullopt;
  for (const ir::Output& output : graph.outputs) {
    if (output.into != param.attrs.index || output.value == wide || graph.type(output.value) != param.type) continue;
    return Narrow{wide, {node.type.dtype, param.type.dims}, output.value};
  }
  return std::nullopt;
}

// `v`, a view of a parameter or that itself, of another that takes its place.
ir::Value ViewOf(const ir::Graph& graph, ir::Value v, ir::Value instead, ir::Builder* b) {
  ir::Node view = graph.node(v);
  if (!IsView(view)) return instead;
  view.inputs[0] = ViewOf(graph, view.inputs[0], instead, b);
  view.type.dtype = b->dtype(instead);
  return b->Append(std::move(view));
}

}  // namespace

std::vector<int32_t> NarrowedSlots(const ir::Graph& graph, const LoweredTrace& lowered) {
  std::vector<int32_t> slots;
  for (const ir::Node& node : graph.nodes) {
    const std::optional<Narrow> narrow = NarrowOf(graph, node, lowered.symbols);
    if (narrow) slots.push_back(lowered.param_slots[graph.node(narrow->param).attrs.index]);
  }
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  return slots;
}

AutocastGraphs AutocastGraphsOf(const ir::Graph& graph, const LoweredTrace& lowered) {
  AutocastGraphs graphs;
  std::vector<Narrow> narrows;
  ir::Builder first("first"), step(graph.name);
  std::vector<ir::Output> made, outputs;
  std::vector<ir::Value> now(graph.nodes.size(), ir::kNoValue), kept;
  std::map<ir::Value, ir::Value> wide;  // parameters of the graph, in `first`
  graphs.step.param_slots = lowered.param_slots;
  for (size_t v = 0; v < graph.nodes.size(); ++v) {
    ir::Node node = graph.nodes[v];
    node.origin = lowered.calls[v];
    first.set_origin(node.origin);
    step.set_origin(node.origin);
    const std::optional<Narrow> narrow = NarrowOf(graph, node, lowered.symbols);
    if (!narrow) {
      for (ir::Value& input : node.inputs) input = now[input];
      now[v] = step.Append(std::move(node));
      continue;
    }
    const auto k = static_cast<size_t>(std::find(narrows.begin(), narrows.end(), *narrow) - narrows.begin());
    if (k == narrows.size()) {
      narrows.push_back(*narrow);
      kept.push_back(step.Param(narrow->type));
      graphs.step.param_slots.push_back(~static_cast<int32_t>(k));
      const auto [param, is_new] = wide.try_emplace(narrow->param, ir::kNoValue);
      if (is_new) {
        param->second = first.Param(graph.type(narrow->param));
        graphs.first.param_slots.push_back(lowered.param_slots[graph.node(narrow->param).attrs.index]);
      }
      made.push_back({first.Cast(param->second, narrow->type.dtype)});
      graphs.first.output_slots.push_back(~static_cast<int32_t>(k));
    }
    now[v] = ViewOf(graph, node.inputs[0], kept[k], &step);
  }
  graphs.step.output_slots = lowered.output_slots;
  for (const ir::Output& output : graph.outputs) outputs.push_back({now[output.value], output.into});
  for (size_t k = 0; k < narrows.size(); ++k) {
    const auto into = static_cast<int32_t>(lowered.param_slots.size() + k);
    outputs.push_back({step.Cast(now[narrows[k].next], narrows[k].type.dtype), into});
    graphs.step.output_slots.push_back(~static_cast<int32_t>(k));
  }
  graphs.first.graph = first.Finish(std::move(made));
  graphs.step.graph = step.Finish(std::move(outputs));
  graphs.first.symbols = graphs.step.symbols = lowered.symbols;
  graphs.step.numbers = lowered.numbers;
  graphs.first.kept_contents = graphs.step.kept_contents = std::make_shared<std::vector<c10::Storage>>(narrows.size());
  return graphs;
}

}  // namespace torch_lazy::lazy
