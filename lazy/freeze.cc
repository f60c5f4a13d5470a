// SPDX-License-Identifier: Apache-2.0
#include "lazy/freeze.h"

#include <algorithm>
#include <utility>

#include "ir/builder.h"
#include "ir/passes/passes.h"
#include "ir/passes/pipeline.h"
#include "lazy/fold_convolutions.h"
#include "lazy/graph_writer.h"

namespace torch_lazy::lazy {
namespace {

bool IsBatchNormInference(const TrieNode& call) { return call.op->name == "aten::_native_batch_norm_legit_no_training"; }

// What the outputs, and calls for their effect if `with_effects`, need of a graph: with the parameters and numbers of these.
LoweredTrace Extract(const ir::Graph& graph, std::vector<ir::Output> outputs, bool with_effects, const LoweredTrace& from) {
  std::vector<bool> needed(graph.nodes.size(), false);
  for (const ir::Output& output : outputs) needed[output.value] = true;
  std::vector<bool> param_is_output(from.param_slots.size(), false);
  for (const ir::Output& output : outputs) {
    if (output.into >= 0) param_is_output[output.into] = true;
  }
  for (size_t v = graph.nodes.size(); v-- > 0;) {
    const ir::Node& node = graph.nodes[v];
    if (node.op == ir::Op::kParam && param_is_output[node.attrs.index]) needed[v] = true;
    if (with_effects && node.op == ir::Op::kCall && (node.attrs.may_fail || node.attrs.inout.empty())) needed[v] = true;
    if (!needed[v]) continue;
    for (const ir::Value input : node.inputs) needed[input] = true;
  }
  LoweredTrace part;
  ir::Builder b(graph.name);
  std::vector<ir::Value> now(graph.nodes.size(), ir::kNoValue);
  std::vector<int32_t> param_now(from.param_slots.size(), -1);
  for (size_t v = 0; v < graph.nodes.size(); ++v) {
    const bool is_written_result = graph.nodes[v].op == ir::Op::kResult && needed[graph.nodes[v].inputs[0]];
    if (!needed[v] && !is_written_result) continue;
    ir::Node node = graph.nodes[v];
    for (ir::Value& input : node.inputs) input = now[input];
    if (node.op == ir::Op::kParam) {
      param_now[node.attrs.index] = static_cast<int32_t>(part.param_slots.size());
      part.param_slots.push_back(from.param_slots[node.attrs.index]);
    } else if (node.op == ir::Op::kScalar) {
      part.numbers.push_back(from.numbers[node.attrs.index]);
    }
    now[v] = b.Append(std::move(node));
  }
  for (ir::Output& output : outputs) {
    output.value = now[output.value];
    if (output.into >= 0) output.into = param_now[output.into];
  }
  part.graph = b.Finish(std::move(outputs));
  part.symbols = from.symbols;
  return part;
}

// A packed convolution's operands before its weight: images, and what it adds to.
size_t NumImages(const ir::Node& call) { return call.attrs.inout[0] >= 0 ? 2 : 1; }

bool IsPacked(const ir::Node& node) { return node.op == ir::Op::kCall && node.attrs.callee == kPackedConvolution; }

// True if most results of convolutions are wanted as ATen would have made them: by another call, or the program. They would all
// be turned around, as where a gradient will be computed.
bool LeaveInOtherOrder(const ir::Graph& graph) {
  std::vector<ir::Value> source(graph.nodes.size(), ir::kNoValue);  // the convolution of which a value is a view
  std::vector<bool> leaves(graph.nodes.size(), false);
  const auto leave = [&](ir::Value v) {
    if (source[v] != ir::kNoValue) leaves[source[v]] = true;
  };
  for (size_t v = 0; v < graph.nodes.size(); ++v) {
    const ir::Node& node = graph.nodes[v];
    if (IsPacked(node)) source[v] = static_cast<ir::Value>(v);
    if (ir::Info(node.op).kind == ir::Kind::kView) source[v] = source[node.inputs[0]];
    if (node.op == ir::Op::kCall && !IsPacked(node)) std::for_each(node.inputs.begin(), node.inputs.end(), leave);
  }
  for (const ir::Output& output : graph.outputs) leave(output.value);
  const auto convolutions = std::count_if(graph.nodes.begin(), graph.nodes.end(), IsPacked);
  return 2 * std::count(leaves.begin(), leaves.end(), true) > convolutions;
}

// The same graph with packed convolutions that know their weights.
ir::Graph WithoutWeights(const ir::Graph& graph) {
  ir::Graph without = graph;
  for (ir::Node& node : without.nodes) {
    if (IsPacked(node)) node.inputs.resize(NumImages(node));
  }
  return without;
}

}  // namespace

std::vector<int32_t> ConstantSlots(const Entry& entry, const Trace& trace) {
  std::vector<int32_t> slots;
  bool any_convolution = false;
  for (const TrieNode* call : entry.calls()) {
    const bool is_convolution = PackedFormOf(trace, *call).has_value();
    any_convolution |= is_convolution;
    if (!is_convolution && !IsBatchNormInference(*call)) continue;
    for (const NodeOperand& operand : call->operands) {
      const Trace::Slot& slot = trace.slots[operand.slot];
      if (operand.arg != 0 && slot.external && !slot.written) slots.push_back(operand.slot);
    }
  }
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  return any_convolution ? slots : std::vector<int32_t>();
}

std::unique_ptr<FrozenTrace> Freeze(const Entry& entry, const Trace& trace, const std::vector<int32_t>& constant_slots) {
  std::vector<PackedConvolution::Form> forms;
  const std::unique_ptr<LoweredTrace> lowered = Lower(entry, trace, [&](GraphWriter* writer, const TrieNode& call) {
    const std::optional<PackedConvolution::Form> form = PackedFormOf(trace, call);
    if (!form) return false;
    const bool stays = std::all_of(call.operands.begin(), call.operands.end(), [&](const NodeOperand& operand) {
      return operand.arg == 0 || std::binary_search(constant_slots.begin(), constant_slots.end(), operand.slot);
    });
    if (!stays || !AppendPacked(writer, call, *form, forms.size())) return false;
    forms.push_back(*form);
    return true;
  });
  if (lowered == nullptr) return nullptr;
  std::vector<bool> constant_params;
  for (const int32_t slot : lowered->param_slots) {
    constant_params.push_back(std::binary_search(constant_slots.begin(), constant_slots.end(), slot));
  }
  absl::StatusOr<ir::Graph> optimized = ir::Optimize(std::move(lowered->graph), {});
  if (!optimized.ok()) return nullptr;
  ir::Graph graph = ir::EliminateCommonSubexpressions(FoldIntoConvolutions(*optimized, constant_params));
  if (LeaveInOtherOrder(graph)) return nullptr;

  auto frozen = std::make_unique<FrozenTrace>();
  std::vector<PackedConvolution> convolutions;
  std::vector<absl::Span<const ir::Value>> weights;  // of these: weight and bias
  std::vector<ir::Output> constants;
  for (ir::Node& node : graph.nodes) {
    if (!IsPacked(node)) continue;
    const auto operands = absl::MakeConstSpan(node.inputs).subspan(NumImages(node));
    PackedConvolution convolution{forms[node.attrs.index], {}, {}};
    convolution.form.has_bias = operands.size() == 2;
    size_t k = 0;  // one that is made several times is packed once
    while (k < convolutions.size() && !(weights[k] == operands && convolutions[k].form == convolution.form)) ++k;
    node.attrs.index = static_cast<int64_t>(k);
    if (k < convolutions.size()) continue;
    convolutions.push_back(std::move(convolution));
    weights.push_back(operands);
    for (const ir::Value operand : operands) constants.push_back({operand});
  }
  frozen->constants = Extract(graph, std::move(constants), /*with_effects=*/false, *lowered);
  frozen->rest = Extract(WithoutWeights(graph), graph.outputs, /*with_effects=*/true, *lowered);
  frozen->rest.output_slots = lowered->output_slots;
  frozen->rest.convolutions = std::move(convolutions);
  return frozen;
}

}  // namespace torch_lazy::lazy
