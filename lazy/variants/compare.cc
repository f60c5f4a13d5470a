// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/compare.h"

#include <cstring>

#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "lazy/eager/eager_device.h"
#include "lazy/eager/memory.h"
#include "lazy/run/interpreter.h"

namespace torch_lazy::lazy {
namespace {

struct Tolerance {
  double relative, absolute;
};

// torch.testing's defaults, per dtype.
Tolerance ToleranceOf(at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf:
      return {1e-3, 1e-5};
    case at::kBFloat16:
      return {1.6e-2, 1e-5};
    case at::kFloat:
    case at::kComplexFloat:
      return {1.3e-6, 1e-5};
    case at::kDouble:
    case at::kComplexDouble:
      return {1e-7, 1e-7};
    default:
      return {0, 0};
  }
}

c10::Storage Copy(const c10::Storage& content) {
  if (!content) return content;
  c10::Storage copy = NewContent(content.nbytes());
  CopyContent(copy, content, content.nbytes());
  return copy;
}

// The dtype in which a slot's bytes are compared: that of the last call that writes it.
at::ScalarType WrittenAs(const CallSequence& calls, int32_t slot) {
  at::ScalarType dtype = at::kByte;
  for (const TrieNode* call : calls.calls()) {
    for (const NodeOperand& operand : call->operands) {
      if (operand.written && operand.slot == slot) dtype = operand.geometry.dtype;
    }
    int32_t result_slot = call->first_result_slot;
    for (const ResultShape& result : call->shape->results) {
      if (result.defined && result.arg < 0 && result_slot++ == slot) dtype = result.geometry.dtype;
    }
  }
  return dtype;
}

at::Tensor Flat(const c10::Storage& content, at::ScalarType dtype) {
  Geometry geometry;
  geometry.dtype = dtype;
  geometry.sizes = {static_cast<int64_t>(content.nbytes() / c10::elementSize(dtype))};
  geometry.strides = {1};
  return Alias(content, geometry);
}

}  // namespace

bool RunAndCompare(const CallSequence& calls, const LoweredTrace& lowered, Runnable* way, Trace* trace) {
  Trace twin;
  twin.numbers = trace->numbers;
  for (const Trace::Slot& slot : trace->slots) {
    twin.slots.push_back(slot);
    twin.slots.back().content = Copy(slot.content);
  }
  if (!way->Run(trace)) return false;
  Interpret(calls, &twin);
  for (const int32_t slot : lowered.output_slots) {
    const at::ScalarType dtype = WrittenAs(calls, slot);
    const Tolerance tolerance = ToleranceOf(dtype);
    const at::Tensor ours = Flat(trace->slots[slot].content, dtype);
    const at::Tensor theirs = Flat(twin.slots[slot].content, dtype);
    if (at::allclose(ours, theirs, tolerance.relative, tolerance.absolute, /*equal_nan=*/true)) continue;
    base::LogLine(absl::StrCat("compare: output in slot ", slot, " of a trace of ", calls.calls().size(),
                               " calls that ends with ", calls.calls().back()->op->name, " differs from ATen's"));
  }
  return true;
}

}  // namespace torch_lazy::lazy
