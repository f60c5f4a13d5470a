// SPDX-License-Identifier: Apache-2.0
#include "lazy/bound_plan.h"

#include <bit>

#include "backends/registry.h"
#include "base/check.h"
#include "base/metrics.h"
#include "lazy/interpreter.h"
#include "lazy/memory.h"

namespace torch_lazy::lazy {
namespace {

// A number among a call's tensors. Most are plain numbers that PyTorch has wrapped: these are read from their memory,
// since `item` goes through the dispatcher and costs as much as recording a call.
double NumberOf(const at::Tensor& tensor, bool integer) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (impl.is_wrapped_number() && !integer && impl.dtype() == caffe2::TypeMeta::Make<double>()) {
    return *static_cast<const double*>(impl.data());
  }
  const at::Scalar number = tensor.item();
  return integer ? std::bit_cast<double>(number.toLong()) : number.toDouble();
}

}  // namespace

struct BoundPlan::Memory {
  std::vector<c10::Storage> contents;  // per buffer; null until first needed
  std::vector<double> numbers;         // per scalar of the graph
};

BoundPlan::BoundPlan(const Entry& entry, const LoweredTrace& lowered, const PlannedGraph& planned)
    : entry_(entry), lowered_(lowered), plan_(planned.plan()) {
  const absl::Span<const int64_t> symbols = lowered.symbols;
  for (const codegen::BufferSpec& buffer : plan_.buffers) {
    size_bytes_.push_back(static_cast<size_t>(ir::SizeBytes(buffer.type, symbols)));
  }
  launches_.resize(plan_.steps.size());
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    int32_t buffers = 0, scalars = 0;
    for (const codegen::Instance& instance : plan_.steps[s].instances) {
      Launch launch;
      launch.first_buffer = buffers;
      launch.num_buffers = static_cast<int32_t>(instance.buffers.size());
      launch.first_scalar = scalars;
      launch.num_scalars = static_cast<int32_t>(instance.scalars.size());
      buffers += launch.num_buffers;
      scalars += launch.num_scalars;
      for (const ir::Extent extent : instance.extents) launch.extents.push_back(extent.Value(symbols));
      launch.instance.function = planned.module().Function(instance.kernel);
      launch.instance.iterations = ir::NumElements(instance.range, symbols);
      launch.instance.grain = instance.grain;
      launch.instance.cost_per_iteration = instance.cost_per_iteration;
      launch.instance.scratch_bytes = codegen::ScratchBytes(instance, symbols);
      launches_[s].push_back(std::move(launch));
    }
    for (Launch& launch : launches_[s]) launch.instance.extents = launch.extents;
  }
}

void BoundPlan::FillNumbers(const Trace& trace, std::vector<double>* numbers) const {
  numbers->reserve(lowered_.numbers.size());
  for (const NumberSource& source : lowered_.numbers) {
    const c10::IValue* value = &trace.numbers[source.place];
    if (source.item >= 0) value = &value->toListRef()[source.item];
    if (value->isTensor()) {
      numbers->push_back(NumberOf(value->toTensor(), source.integer));
    } else if (source.integer) {
      numbers->push_back(std::bit_cast<double>(value->isBool() ? static_cast<int64_t>(value->toBool()) : value->toInt()));
    } else {
      numbers->push_back(value->toDouble());
    }
  }
}

void BoundPlan::RunLaunch(size_t step, Memory* memory) const {
  std::vector<void*> pointers;
  std::vector<double> scalars;
  std::vector<backends::BoundInstance> instances;
  for (const codegen::Instance& instance : plan_.steps[step].instances) {
    for (const int32_t buffer : instance.buffers) {
      c10::Storage& content = memory->contents[buffer];
      if (!content) content = NewContent(size_bytes_[buffer]);
      pointers.push_back(content.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get());
    }
    for (const int32_t scalar : instance.scalars) scalars.push_back(memory->numbers[scalar]);
  }
  instances.reserve(launches_[step].size());
  for (const Launch& launch : launches_[step]) {
    if (launch.instance.iterations == 0) continue;
    instances.push_back(launch.instance);
    instances.back().buffers = absl::MakeConstSpan(pointers).subspan(launch.first_buffer, launch.num_buffers);
    instances.back().scalars = absl::MakeConstSpan(scalars).subspan(launch.first_scalar, launch.num_scalars);
  }
  if (!instances.empty()) backends::Get().Launch(instances);
}

void BoundPlan::RunCall(size_t step, Trace* trace, Memory* memory) const {
  const codegen::Step& plan_step = plan_.steps[step];
  const ir::Node& node = lowered_.graph.node(plan_step.call);
  const TrieNode& call = *entry_.calls()[static_cast<size_t>(node.attrs.index)];
  // Operands stand in the order of their slots' first use by the call; the interpreter looks them up by slot.
  std::vector<int32_t> slots;
  for (const NodeOperand& operand : call.operands) {
    if (std::find(slots.begin(), slots.end(), operand.slot) == slots.end()) slots.push_back(operand.slot);
  }
  LAZY_CHECK(slots.size() == plan_step.operands.size(), call.op->name, ": ", plan_step.operands.size(), " buffers for ",
             slots.size(), " slots");
  for (size_t i = 0; i < slots.size(); ++i) {
    c10::Storage& content = memory->contents[plan_step.operands[i]];
    if (!content) content = NewContent(size_bytes_[plan_step.operands[i]]);
    trace->slots[slots[i]].content = content;
  }
  InterpretCall(call, trace);
  base::Count(base::Counter::kLibraryCalls);
  size_t r = 0;
  while (r < node.attrs.inout.size() && node.attrs.inout[r] >= 0) ++r;  // the first results are operands written in place
  int32_t slot = call.first_result_slot;
  for (; r < plan_step.results.size(); ++r, ++slot) {
    const int32_t buffer = plan_step.results[r];  // -1: nobody reads this result
    if (buffer >= 0) memory->contents[buffer] = trace->slots[slot].content;
    trace->slots[slot].content = c10::Storage();
  }
  for (const int32_t used : slots) trace->slots[used].content = c10::Storage();
}

void BoundPlan::Run(Trace* trace) const {
  Memory memory;
  memory.contents.resize(plan_.buffers.size());
  FillNumbers(*trace, &memory.numbers);
  for (size_t b = 0; b < plan_.buffers.size(); ++b) {
    if (plan_.buffers[b].kind != codegen::BufferSpec::Kind::kParam) continue;
    c10::Storage& content = trace->slots[lowered_.param_slots[plan_.buffers[b].index]].content;
    if (!content) content = NewContent(size_bytes_[b]);
    memory.contents[b] = content;
  }
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    if (plan_.steps[s].kind == codegen::Step::Kind::kLaunch) {
      RunLaunch(s, &memory);
    } else {
      RunCall(s, trace, &memory);
    }
    for (const int32_t buffer : plan_.steps[s].frees) memory.contents[buffer] = c10::Storage();
  }
  for (size_t k = 0; k < plan_.outputs.size(); ++k) {
    c10::Storage& content = memory.contents[plan_.outputs[k]];
    if (!content) content = NewContent(size_bytes_[plan_.outputs[k]]);
    trace->slots[lowered_.output_slots[k]].content = content;
  }
}

}  // namespace torch_lazy::lazy
