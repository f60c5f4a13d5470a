// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace.h"

namespace torch_lazy::lazy {

bool Trace::Updates(const TrieNode& call) const {
  for (const NodeOperand& operand : call.operands) {
    if (operand.written && slots[operand.slot].older) return true;
  }
  return false;
}

bool Trace::AliveAfter(size_t slot, size_t end) const {
  if (slots[slot].calls_at_death != end) return slots[slot].calls_at_death > end;
  for (size_t k = slots[slot].first_call; k + 1 < end; ++k) {
    if (Updates(*path[k])) return true;
  }
  bool is_read = false;
  for (const NodeOperand& operand : path[end - 1]->operands) {
    if (static_cast<size_t>(operand.slot) != slot) continue;
    if (operand.written) return true;
    is_read = true;
  }
  return !is_read;
}

const c10::IValue& Trace::Argument(const TrieNode& call, size_t arg) const {
  const int32_t place = call.PlaceOfNumber(arg);
  return place >= 0 ? numbers[place] : call.args[arg];
}

}  // namespace torch_lazy::lazy
