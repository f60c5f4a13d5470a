// SPDX-License-Identifier: Apache-2.0
#include "lazy/libraries/choose_convolutions.h"

#include <algorithm>
#include <utility>

#include "base/flags.h"
#include "ir/passes/pipeline.h"
#include "lazy/libraries/convolutions.h"
#include "lazy/libraries/fold_convolutions.h"
#include "lazy/libraries/recorded_convolution.h"
#include "lazy/lower/lower.h"

namespace torch_lazy::lazy {
namespace {

bool IsOneOf(const std::vector<int32_t>& slots, int32_t slot) {
  return std::binary_search(slots.begin(), slots.end(), slot);
}

void Sort(std::vector<int32_t>* slots) {
  std::sort(slots->begin(), slots->end());
  slots->erase(std::unique(slots->begin(), slots->end()), slots->end());
}

using Forms = absl::flat_hash_map<int64_t, PackedConvolution::Form>;  // by call

// With these calls packed.
std::optional<FoldedTrace> Fold(const CallSequence& calls, const Trace& trace, const ConstantSlots& constants,
                                Forms forms) {
  std::unique_ptr<LoweredTrace> lowered = Lower(calls, trace, [&](GraphWriter* writer, const TrieNode& call, size_t k) {
    const auto form = forms.find(static_cast<int64_t>(k));
    return form != forms.end() && AppendPacked(writer, call, k, form->second);
  });
  if (lowered == nullptr) return std::nullopt;
  std::vector<bool> constant_params;
  for (const int32_t slot : lowered->param_slots) constant_params.push_back(IsOneOf(constants.params, slot));
  const ir::PassOptions options = {.verify = base::Number(base::Option::kVerify) != 0, .dump_folder = ""};
  ir::PassContext context;
  context.for_gpu = PacksForCudnn();
  context.constant_params = constant_params;
  absl::StatusOr<ir::Graph> graph = ir::Optimize(std::move(lowered->graph), options);
  if (graph.ok()) graph = ir::RunPasses(ConvolutionPasses(), *std::move(graph), options, &context);
  if (!graph.ok()) return std::nullopt;
  return FoldedTrace{std::move(lowered), std::move(constant_params), *std::move(graph), std::move(forms)};
}

// Calls that can be packed, of weights that seem to be constant.
Forms FindForms(const CallSequence& calls, const Trace& trace, const ConstantSlots& constants) {
  Forms forms;
  for (size_t k = 0; k < calls.calls().size(); ++k) {
    const TrieNode& call = *calls.calls()[k];
    std::optional<PackedConvolution::Form> form = PackedFormOf(trace, call);
    const bool stays =
        form && std::all_of(call.operands.begin(), call.operands.end(), [&](const NodeOperand& operand) {
          return operand.arg == 0 || IsOneOf(constants.params, operand.slot) || IsOneOf(constants.copies, operand.slot);
        });
    if (stays) forms[static_cast<int64_t>(k)] = *std::move(form);
  }
  return forms;
}

// Of the calls that are packed, those of constant weights; for cuDNN, of these those that are faster with ReLU, and
// their summands.
Forms FindBest(const FoldedTrace& folded) {
  const ir::Graph& graph = folded.graph;
  const std::vector<bool> is_constant = FollowFromConstants(graph, folded.constant_params);
  std::vector<bool> is_sum(graph.nodes.size(), false);
  Forms best;
  for (size_t v = graph.nodes.size(); v-- > 0;) {
    const ir::Node& node = graph.nodes[v];
    if (node.op == ir::Op::kReshape && is_sum[v]) is_sum[node.inputs[0]] = true;
    if (!IsPacked(node)) continue;
    const size_t images = NumImages(node);
    if (!std::all_of(node.inputs.begin() + images, node.inputs.end(),
                     [&](ir::Value input) { return is_constant[input]; }))
      continue;
    const PackedConvolution::Form& form = folded.forms.at(node.attrs.index);
    if (PacksForCudnn() && (HasRelu(node) ? !IsFusedFaster({form, images == 2}) : !IsSummand(node) || !is_sum[v]))
      continue;
    best[node.attrs.index] = form;
    if (images == 2) is_sum[node.inputs[1]] = true;
  }
  return best;
}

}  // namespace

ConstantSlots FindConstantSlots(const CallSequence& calls, const Trace& trace) {
  ConstantSlots constants;
  const auto stays = [&](int32_t slot) { return trace.slots[slot].external && !trace.slots[slot].written; };
  absl::flat_hash_map<int32_t, int32_t> copied_from;
  bool any_convolution = false;
  for (const TrieNode* call : calls.calls()) {
    if (call->op->Has(kCopies) && call->operands.size() == 2)
      copied_from[call->operands[0].slot] = call->operands[1].slot;
    const bool is_convolution = PackedFormOf(trace, *call).has_value();
    any_convolution |= is_convolution;
    if (!is_convolution && !call->op->Has(kScalesChannels)) continue;
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

std::vector<FusedForm> FindFusedForms(const CallSequence& calls, const Trace& trace, const ConstantSlots& constants) {
  std::vector<FusedForm> found;
  if (!PacksForCudnn()) return found;
  const std::optional<FoldedTrace> folded = Fold(calls, trace, constants, FindForms(calls, trace, constants));
  if (!folded) return found;
  for (const ir::Node& node : folded->graph.nodes) {
    if (!HasRelu(node)) continue;
    const FusedForm fused{folded->forms.at(node.attrs.index), NumImages(node) == 2};
    if (std::ranges::find(found, fused) == found.end()) found.push_back(fused);
  }
  return found;
}

std::optional<FoldedTrace> FoldBest(const CallSequence& calls, const Trace& trace, const ConstantSlots& constants) {
  std::optional<FoldedTrace> folded = Fold(calls, trace, constants, FindForms(calls, trace, constants));
  while (folded) {  // what is not packed is a call again, and what it added may be another's sum
    Forms best = FindBest(*folded);
    if (best.size() == folded->forms.size()) break;
    folded = Fold(calls, trace, constants, std::move(best));
  }
  return folded;
}

}  // namespace torch_lazy::lazy
