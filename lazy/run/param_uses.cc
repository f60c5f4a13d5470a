// SPDX-License-Identifier: Apache-2.0
#include "lazy/run/param_uses.h"

#include <algorithm>

#include "lazy/lower/strided_views.h"

namespace torch_lazy::lazy {
namespace {

// The storage may be dead, and its memory wanted. While a call may still fail, all is kept for the interpreter.
void FindLastReads(const codegen::Plan& plan, ParamUses* uses) {
  std::vector<size_t> last_read(plan.buffers.size(), SIZE_MAX);  // SIZE_MAX: none, or it is written
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const auto read = [&](int32_t buffer) { last_read[buffer] = std::max(s, uses->failing_end); };
    const codegen::Step& step = plan.steps[s];
    std::for_each(step.operands.begin(), step.operands.end(), read);
    for (const codegen::Instance& instance : step.instances)
      std::for_each(instance.buffers.begin(), instance.buffers.end(), read);
  }
  const auto write = [&](int32_t buffer) {
    if (buffer >= 0) last_read[buffer] = SIZE_MAX;
  };
  std::for_each(plan.outputs.begin(), plan.outputs.end(), write);
  for (const codegen::Step& step : plan.steps) {
    std::for_each(step.results.begin(), step.results.end(), write);
    for (const codegen::Instance& instance : step.instances)
      std::for_each(instance.written.begin(), instance.written.end(), write);
  }
  uses->last_reads.resize(plan.steps.size());
  for (size_t b = 0; b < last_read.size(); ++b) {
    if (plan.buffers[b].kind != codegen::BufferSpec::Kind::kParam || last_read[b] >= plan.steps.size()) continue;
    uses->last_reads[last_read[b]].push_back(static_cast<int32_t>(b));
    uses->undoable_end = std::min(uses->undoable_end, last_read[b] + 1);
  }
}

// Which inputs of a call its `out=` arguments overwrite unread, all of their storage.
std::vector<bool> OverwrittenInputs(const ir::Node& node, const CallSequence& calls, const ir::Graph& graph,
                                    absl::Span<const int64_t> symbols) {
  std::vector<bool> is_overwritten(node.inputs.size(), node.op == ir::Op::kCall);
  if (node.op != ir::Op::kCall) return is_overwritten;
  const TrieNode& call = *calls.calls()[static_cast<size_t>(node.attrs.index)];
  if (node.attrs.callee != call.op->name) return std::vector<bool>(node.inputs.size(), false);  // it stands for several
  const std::vector<int32_t> slots = call.DistinctSlots();
  for (const NodeOperand& operand : call.operands) {
    const size_t at = static_cast<size_t>(std::find(slots.begin(), slots.end(), operand.slot) - slots.begin());
    const size_t size_bytes = static_cast<size_t>(ir::SizeBytes(graph.type(node.inputs[at]), symbols));
    if (!call.op->args[static_cast<size_t>(operand.arg)].is_out || !MemoryOrder(operand.geometry, size_bytes))
      is_overwritten[at] = false;
  }
  return is_overwritten;
}

// By what the outputs, and calls that may fail, need: views of a tensor that is overwritten are there, too, and nobody
// takes them.
std::vector<int32_t> FindReadParams(const CallSequence& calls, const codegen::Plan& plan, const ir::Graph& graph,
                                    size_t num_params, absl::Span<const int64_t> symbols) {
  std::vector<bool> is_needed(graph.nodes.size(), false), is_read(graph.nodes.size(), false);
  for (const ir::Output& output : graph.outputs) is_needed[output.value] = is_read[output.value] = true;
  for (size_t v = graph.nodes.size(); v-- > 0;) {
    const ir::Node& node = graph.nodes[v];
    if (node.op == ir::Op::kCall && (node.attrs.may_fail || node.attrs.inout.empty())) is_needed[v] = true;
    if (!is_needed[v]) continue;
    const std::vector<bool> is_overwritten = OverwrittenInputs(node, calls, graph, symbols);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      is_needed[node.inputs[k]] = true;
      if (!is_overwritten[k]) is_read[node.inputs[k]] = true;
    }
  }
  std::vector<bool> is_param_read(num_params, false);
  for (size_t v = 0; v < graph.nodes.size(); ++v) {
    const ir::Node& node = graph.nodes[v];
    if (node.op == ir::Op::kParam && is_read[v]) is_param_read[static_cast<size_t>(node.attrs.index)] = true;
  }
  std::vector<int32_t> read;
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const codegen::BufferSpec& buffer = plan.buffers[b];
    if (buffer.kind == codegen::BufferSpec::Kind::kParam && is_param_read[static_cast<size_t>(buffer.index)]) {
      read.push_back(static_cast<int32_t>(b));
    }
  }
  return read;
}

void FindSaves(const codegen::Plan& plan, const ir::Graph& graph, ParamUses* uses) {
  uses->saves.resize(plan.steps.size());
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const codegen::Step& step = plan.steps[s];
    if (step.kind == codegen::Step::Kind::kCall && graph.node(step.call).attrs.may_fail) uses->failing_end = s + 1;
  }
  uses->undoable_end = plan.steps.size();
  std::vector<bool> is_saved(plan.buffers.size(), false);
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const auto write = [&](int32_t buffer) {
      if (buffer < 0 || plan.buffers[buffer].kind != codegen::BufferSpec::Kind::kParam) return;
      if (s >= uses->failing_end) uses->undoable_end = std::min(uses->undoable_end, s);
      if (s < uses->failing_end && !is_saved[buffer]) uses->saves[s].push_back(buffer);
      is_saved[buffer] = true;
    };
    const codegen::Step& step = plan.steps[s];
    std::for_each(step.results.begin(), step.results.end(), write);
    for (const codegen::Instance& instance : step.instances) {
      std::for_each(instance.written.begin(), instance.written.end(), write);
    }
  }
}

}  // namespace

ParamUses FindParamUses(const CallSequence& calls, const codegen::Plan& plan, const ir::Graph& graph, size_t num_params,
                        absl::Span<const int64_t> symbols) {
  ParamUses uses;
  uses.read = FindReadParams(calls, plan, graph, num_params, symbols);
  FindSaves(plan, graph, &uses);
  FindLastReads(plan, &uses);
  return uses;
}

}  // namespace torch_lazy::lazy
