// SPDX-License-Identifier: Apache-2.0
#include "lazy/lower/graph_writer.h"

#include "base/check.h"

namespace torch_lazy::lazy {
namespace {

// How a storage's value is laid out when its first tensor has this geometry: that tensor's dims if it covers the
// storage, else the flat array of its elements.
MemoryValue LayoutOf(const Geometry& geometry, size_t size_bytes) {
  MemoryValue memory;
  memory.dtype = geometry.dtype;
  if (const auto order = MemoryOrder(geometry, size_bytes)) {
    for (const int d : *order) memory.dims.push_back(geometry.sizes[d]);
  } else {
    const int64_t count = static_cast<int64_t>(size_bytes / c10::elementSize(geometry.dtype));
    if (count != 1) memory.dims.push_back(count);
  }
  return memory;
}

}  // namespace

GraphWriter::GraphWriter(const Trace& trace, LoweredTrace* lowered, size_t num_calls)
    : trace_(trace),
      lowered_(*lowered),
      builder_("trace"),
      values_(trace.slots.size()),
      param_of_slot_(trace.slots.size(), -1) {
  // Room costs nothing until it is used, and moving nodes does.
  constexpr size_t kNodesPerCall = 16;
  constexpr size_t kNodesPerSlot = 8;  // calls on lists write many
  builder_.Reserve(num_calls * kNodesPerCall + trace.slots.size() * kNodesPerSlot);
}

const MemoryValue* GraphWriter::Current(int32_t slot, const Geometry& first_seen) {
  MemoryValue& memory = values_[slot];
  if (memory.value != ir::kNoValue) return &memory;
  const auto dtype = DTypeOf(first_seen.dtype);
  if (!dtype) return nullptr;
  memory = LayoutOf(first_seen, SizeBytesOf(slot));
  memory.value = builder_.Param({*dtype, symbols_.DimsOf(memory.dims)});
  param_of_slot_[slot] = static_cast<int32_t>(lowered_.param_slots.size());
  lowered_.param_slots.push_back(slot);
  return &memory;
}

ir::Value GraphWriter::Read(int32_t slot, const Geometry& geometry) {
  const MemoryValue* memory = Current(slot, geometry);
  return memory == nullptr ? ir::kNoValue : lazy::Read(&builder_, &symbols_, *memory, geometry);
}

bool GraphWriter::CanWrite(int32_t slot, const Geometry& geometry) const {
  return DTypeOf(geometry.dtype) && MemoryOrder(geometry, SizeBytesOf(slot)).has_value();
}

void GraphWriter::Write(int32_t slot, const Geometry& geometry, ir::Value logical) {
  // A slot that was there before the trace keeps its memory: it is a parameter even if nobody reads its old value.
  if (trace_.slots[slot].external) Current(slot, geometry);
  const auto order = MemoryOrder(geometry, SizeBytesOf(slot));
  LAZY_CHECK(order.has_value(), "write through a geometry that does not cover slot ", slot);
  values_[slot] = lazy::Write(&builder_, &symbols_, logical, geometry, *order);
}

ir::Value GraphWriter::Number(const TrieNode& call, int arg, int item, bool integer) {
  const int32_t place = call.PlaceOfNumber(static_cast<size_t>(arg));
  LAZY_CHECK(place >= 0, call.op->name, ": argument ", arg, " is no run-time number");
  lowered_.numbers.push_back({place, item, integer});
  return builder_.Scalar(integer ? ir::DType::kI64 : ir::DType::kF64);
}

bool GraphWriter::AppendCall(const TrieNode& call, size_t k) {
  std::vector<int32_t> slots;  // of the operands, each once
  std::vector<bool> written;
  std::vector<ir::Value> operands;
  for (const NodeOperand& operand : call.operands) {
    size_t at = 0;
    while (at < slots.size() && slots[at] != operand.slot) ++at;
    if (at == slots.size()) {
      const MemoryValue* memory = Current(operand.slot, operand.geometry);
      if (memory == nullptr) return false;
      slots.push_back(operand.slot);
      written.push_back(false);
      operands.push_back(memory->value);
    }
    written[at] = written[at] || operand.written;
  }
  std::vector<ir::Type> types;
  std::vector<int32_t> result_slots;
  std::vector<MemoryValue> results;
  ir::Ints inout;
  for (size_t at = 0; at < slots.size(); ++at) {
    if (!written[at]) continue;
    types.push_back(builder_.type(operands[at]));
    results.push_back(values_[slots[at]]);
    result_slots.push_back(slots[at]);
    inout.push_back(static_cast<int64_t>(at));
  }
  int32_t slot = call.first_result_slot;
  for (const ResultShape& result : call.shape->results) {
    if (!result.defined || result.arg >= 0) continue;
    const auto dtype = DTypeOf(result.geometry.dtype);
    if (!dtype) return false;
    results.push_back(LayoutOf(result.geometry, result.size_bytes));
    types.push_back({*dtype, symbols_.DimsOf(results.back().dims)});
    result_slots.push_back(slot++);
    inout.push_back(-1);
  }
  const std::vector<ir::Value> values =
      builder_.Call(call.op->name, static_cast<int64_t>(k), operands, types, inout, call.op->may_fail());
  for (size_t r = 0; r < result_slots.size(); ++r) {
    results[r].value = values[r];
    values_[result_slots[r]] = results[r];
  }
  return true;
}

bool GraphWriter::Finish(const std::vector<bool>& live) {
  std::vector<ir::Output> outputs;
  for (size_t slot = 0; slot < live.size(); ++slot) {
    if (!live[slot]) continue;
    if (values_[slot].value == ir::kNoValue) return false;
    outputs.push_back({values_[slot].value, param_of_slot_[slot]});
    lowered_.output_slots.push_back(static_cast<int32_t>(slot));
  }
  lowered_.symbols = symbols_.numbers();
  lowered_.graph = builder_.Finish(std::move(outputs));
  return true;
}

}  // namespace torch_lazy::lazy
