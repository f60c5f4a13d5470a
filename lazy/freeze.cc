// SPDX-License-Identifier: Apache-2.0
#include "lazy/freeze.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "ir/builder.h"
#include "ir/passes/passes.h"
#include "ir/passes/pipeline.h"
#include "lazy/bound_plan.h"
#include "lazy/cudnn_convolution.h"
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

// True if other calls or the program want most images in ATen's order: all these would be turned around, as where a gradient
// is, or will be, computed.
bool MostAreTurned(const ir::Graph& graph) {
  std::vector<bool> is_turned(graph.nodes.size(), false), is_wanted(graph.nodes.size(), false);
  for (size_t v = 0; v < graph.nodes.size(); ++v) {
    const ir::Node& node = graph.nodes[v];
    is_turned[v] = node.op == ir::Op::kPermute || (ir::Info(node.op).kind == ir::Kind::kView && is_turned[node.inputs[0]]);
    if (node.op != ir::Op::kCall || IsPacked(node)) continue;
    for (const ir::Value input : node.inputs) is_wanted[input] = is_turned[input];
  }
  for (const ir::Output& output : graph.outputs) is_wanted[output.value] = is_turned[output.value];
  const auto convolutions = std::count_if(graph.nodes.begin(), graph.nodes.end(), IsPacked);
  return 2 * std::count(is_wanted.begin(), is_wanted.end(), true) > convolutions;
}

// Equal numbers become one: each batch norm brings its own epsilon.
ir::Graph WithEqualNumbersOnce(const ir::Graph& graph, const std::vector<double>& numbers) {
  std::vector<ir::Value> now(graph.nodes.size());
  std::map<std::pair<ir::DType, int64_t>, ir::Value> first;
  ir::Graph once = graph;
  for (size_t v = 0; v < graph.nodes.size(); ++v) {
    const ir::Node& node = graph.nodes[v];
    now[v] = static_cast<ir::Value>(v);
    if (node.op == ir::Op::kScalar) {
      const auto bits = std::bit_cast<int64_t>(numbers[static_cast<size_t>(node.attrs.index)]);
      now[v] = first.try_emplace({node.type.dtype, bits}, now[v]).first->second;
    }
    for (ir::Value& input : once.nodes[v].inputs) input = now[input];
  }
  return once;
}

// The same graph with packed convolutions that know their weights.
ir::Graph WithoutWeights(const ir::Graph& graph) {
  ir::Graph without = graph;
  for (ir::Node& node : without.nodes) {
    if (IsPacked(node)) node.inputs.resize(NumImages(node));
  }
  return without;
}

bool IsOneOf(const std::vector<int32_t>& slots, int32_t slot) { return std::binary_search(slots.begin(), slots.end(), slot); }

void Sort(std::vector<int32_t>* slots) {
  std::sort(slots->begin(), slots->end());
  slots->erase(std::unique(slots->begin(), slots->end()), slots->end());
}

using Forms = absl::flat_hash_map<int64_t, PackedConvolution::Form>;  // by call

// Lowered but for the graph, which packs these calls and has folded what it can into them; null if that cannot be.
struct Folded {
  std::unique_ptr<LoweredTrace> lowered;
  std::vector<bool> constant_params;
  ir::Graph graph;
};
std::optional<Folded> Fold(const Entry& entry, const Trace& trace, const ConstantSlots& constants, const Forms& forms) {
  std::unique_ptr<LoweredTrace> lowered = Lower(entry, trace, [&](GraphWriter* writer, const TrieNode& call, size_t k) {
    const auto form = forms.find(static_cast<int64_t>(k));
    return form != forms.end() && AppendPacked(writer, call, k, form->second);
  });
  if (lowered == nullptr) return std::nullopt;
  std::vector<bool> constant_params;
  for (const int32_t slot : lowered->param_slots) constant_params.push_back(IsOneOf(constants.params, slot));
  absl::StatusOr<ir::Graph> optimized = ir::Optimize(std::move(lowered->graph), {});
  if (!optimized.ok()) return std::nullopt;
  const auto fold = PacksForCudnn() ? &FuseReluConvolutions : &FoldIntoConvolutions;
  ir::Graph graph = fold(*optimized, constant_params);
  return Folded{std::move(lowered), std::move(constant_params), std::move(graph)};
}

// Calls that can be packed, of weights that seem to be constant.
Forms FindForms(const Entry& entry, const Trace& trace, const ConstantSlots& constants) {
  Forms forms;
  for (size_t k = 0; k < entry.calls().size(); ++k) {
    const TrieNode& call = *entry.calls()[k];
    std::optional<PackedConvolution::Form> form = PackedFormOf(trace, call);
    const bool stays = form && std::all_of(call.operands.begin(), call.operands.end(), [&](const NodeOperand& operand) {
      return operand.arg == 0 || IsOneOf(constants.params, operand.slot) || IsOneOf(constants.copies, operand.slot);
    });
    if (stays) forms[static_cast<int64_t>(k)] = *std::move(form);
  }
  return forms;
}

// Of the calls that are packed, those of constant weights; for cuDNN, of these those that are faster with ReLU, and their summands.
Forms FindBest(const Folded& folded, const Forms& forms) {
  const ir::Graph& graph = folded.graph;
  const std::vector<bool> is_constant = FollowFromConstants(graph, folded.constant_params);
  std::vector<bool> is_sum(graph.nodes.size(), false);
  Forms best;
  for (size_t v = graph.nodes.size(); v-- > 0;) {
    const ir::Node& node = graph.nodes[v];
    if (node.op == ir::Op::kReshape && is_sum[v]) is_sum[node.inputs[0]] = true;
    if (!IsPacked(node)) continue;
    const size_t images = NumImages(node);
    if (!std::all_of(node.inputs.begin() + images, node.inputs.end(), [&](ir::Value input) { return is_constant[input]; })) continue;
    const PackedConvolution::Form& form = forms.at(node.attrs.index);
    if (PacksForCudnn() && (HasRelu(node) ? !IsFusedFaster({form, images == 2}) : !IsSummand(node) || !is_sum[v])) continue;
    best[node.attrs.index] = form;
    if (images == 2) is_sum[node.inputs[1]] = true;
  }
  return best;
}

}  // namespace

ConstantSlots FindConstantSlots(const Entry& entry, const Trace& trace) {
  ConstantSlots constants;
  const auto stays = [&](int32_t slot) { return trace.slots[slot].external && !trace.slots[slot].written; };
  absl::flat_hash_map<int32_t, int32_t> copied_from;
  bool any_convolution = false;
  for (const TrieNode* call : entry.calls()) {
    if (call->op->name == "aten::copy_" && call->operands.size() == 2) copied_from[call->operands[0].slot] = call->operands[1].slot;
    const bool is_convolution = PackedFormOf(trace, *call).has_value();
    any_convolution |= is_convolution;
    if (!is_convolution && !IsBatchNormInference(*call)) continue;
    for (const NodeOperand& operand : call->operands) {
      if (operand.arg == 0) continue;
      if (stays(operand.slot)) constants.params.push_back(operand.slot);
      const auto copy = copied_from.find(operand.slot);
      if (copy == copied_from.end() || !stays(copy->second)) continue;
      constants.params.push_back(copy->second);
      constants.copies.push_back(operand.slot);
    }
  }
  Sort(&constants.params);
  Sort(&constants.copies);
  return any_convolution ? constants : ConstantSlots();
}

std::vector<FusedForm> FindFusedForms(const Entry& entry, const Trace& trace, const ConstantSlots& constants) {
  std::vector<FusedForm> found;
  if (!PacksForCudnn()) return found;
  const Forms forms = FindForms(entry, trace, constants);
  const std::optional<Folded> folded = Fold(entry, trace, constants, forms);
  if (!folded) return found;
  for (const ir::Node& node : folded->graph.nodes) {
    if (!HasRelu(node)) continue;
    const FusedForm fused{forms.at(node.attrs.index), NumImages(node) == 2};
    const bool is_new = std::ranges::none_of(found, [&](const FusedForm& other) { return other.form == fused.form && other.adds == fused.adds; });
    if (is_new) found.push_back(fused);
  }
  return found;
}

std::unique_ptr<FrozenTrace> Freeze(const Entry& entry, const Trace& trace, const ConstantSlots& constant_slots) {
  Forms forms = FindForms(entry, trace, constant_slots);
  std::optional<Folded> folded = Fold(entry, trace, constant_slots, forms);
  while (folded) {  // what is not packed is a call again, and what it added may be another's sum
    Forms best = FindBest(*folded, forms);
    if (best.size() == forms.size()) break;
    forms = std::move(best);
    folded = Fold(entry, trace, constant_slots, forms);
  }
  if (!folded || std::ranges::none_of(folded->graph.nodes, IsPacked) || MostAreTurned(folded->graph)) return nullptr;
  const ir::Graph& graph = folded->graph;
  const std::unique_ptr<LoweredTrace>& lowered = folded->lowered;

  auto frozen = std::make_unique<FrozenTrace>();
  std::vector<ir::Output> weights;
  for (const ir::Node& node : graph.nodes) {
    if (!IsPacked(node)) continue;
    for (size_t k = NumImages(node); k < node.inputs.size(); ++k) weights.push_back({node.inputs[k]});
  }
  frozen->constants = Extract(graph, std::move(weights), /*with_effects=*/false, *lowered);
  ir::Graph& constants = frozen->constants.graph;
  constants = ir::EliminateCommonSubexpressions(WithEqualNumbersOnce(constants, NumbersOf(frozen->constants, trace)));

  // What is made several times is packed once.
  std::vector<PackedConvolution> convolutions;
  std::vector<ir::Output> kept;
  std::map<std::pair<ir::Value, ir::Value>, std::vector<size_t>> made_of;  // weight and bias: convolutions
  auto constant = constants.outputs.begin();
  for (const ir::Node& node : graph.nodes) {
    if (!IsPacked(node)) continue;
    PackedConvolution convolution{forms[node.attrs.index], node.attrs.index, HasRelu(node), convolutions.size(), {}, {}};
    convolution.form.has_bias = node.inputs.size() == NumImages(node) + 2;
    const ir::Output weight = *constant++, bias = convolution.form.has_bias ? *constant++ : ir::Output();
    std::vector<size_t>& same = made_of[{weight.value, bias.value}];
    const auto found = std::find_if(same.begin(), same.end(), [&](size_t k) { return convolutions[k].form == convolution.form; });
    if (found != same.end()) {
      convolution.same_as = *found;
    } else {
      same.push_back(convolutions.size());
      kept.push_back(weight);
      if (convolution.form.has_bias) kept.push_back(bias);
    }
    convolutions.push_back(std::move(convolution));
  }
  constants.outputs = std::move(kept);
  frozen->rest = Extract(WithoutWeights(graph), graph.outputs, /*with_effects=*/true, *lowered);
  frozen->rest.output_slots = lowered->output_slots;
  frozen->rest.convolutions = std::move(convolutions);
  return frozen;
}

}  // namespace torch_lazy::lazy
