// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/freeze.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "ir/builder.h"
#include "ir/passes/passes.h"
#include "lazy/libraries/cudnn_convolution.h"

namespace torch_lazy::lazy {
namespace {

// What the outputs, and calls for their effect if `with_effects`, need of a graph: with the parameters and numbers of
// these.
LoweredTrace Extract(const ir::Graph& graph, std::vector<ir::Output> outputs, bool with_effects,
                     const LoweredTrace& from) {
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

// True if other calls or the program want most images in ATen's order: all these would be turned around, as where a
// gradient is, or will be, computed.
bool MostAreTurned(const ir::Graph& graph) {
  std::vector<bool> is_turned(graph.nodes.size(), false), is_wanted(graph.nodes.size(), false);
  for (size_t v = 0; v < graph.nodes.size(); ++v) {
    const ir::Node& node = graph.nodes[v];
    is_turned[v] =
        node.op == ir::Op::kPermute || (ir::Info(node.op).kind == ir::Kind::kView && is_turned[node.inputs[0]]);
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

}  // namespace

std::unique_ptr<FrozenTrace> Freeze(const CallSequence& calls, const Trace& trace,
                                    const ConstantSlots& constant_slots) {
  const std::optional<FoldedTrace> folded = FoldBest(calls, trace, constant_slots);
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
  constants = ir::EliminateCommonSubexpressions(WithEqualNumbersOnce(constants, ScalarsOf(frozen->constants, trace)));

  // What is made several times is packed once.
  std::vector<PackedConvolution> convolutions;
  std::vector<ir::Output> kept;
  std::map<std::pair<ir::Value, ir::Value>, std::vector<size_t>> made_of;  // weight and bias: convolutions
  auto constant = constants.outputs.begin();
  for (const ir::Node& node : graph.nodes) {
    if (!IsPacked(node)) continue;
    PackedConvolution convolution{
        folded->forms.at(node.attrs.index), node.attrs.index, HasRelu(node), convolutions.size(), {}, {}, {}};
    if (convolution.has_relu) convolution.saves = SecondsSaved({convolution.form, NumImages(node) == 2});
    convolution.form.has_bias = node.inputs.size() == NumImages(node) + 2;
    const ir::Output weight = *constant++, bias = convolution.form.has_bias ? *constant++ : ir::Output();
    std::vector<size_t>& same = made_of[{weight.value, bias.value}];
    const auto found =
        std::find_if(same.begin(), same.end(), [&](size_t k) { return convolutions[k].form == convolution.form; });
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
  frozen->convolutions = std::move(convolutions);
  return frozen;
}

}  // namespace torch_lazy::lazy
