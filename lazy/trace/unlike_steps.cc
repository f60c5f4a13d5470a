// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace/unlike_steps.h"

#include <algorithm>

#include "absl/hash/hash.h"
#include "lazy/trace/handed_over.h"

namespace torch_lazy::lazy {

size_t UnlikeSteps::Note(const Calls& calls, const Slots& slots, size_t call) {
  const TrieNode& node = *calls[call];
  size_t repeated = call;
  for (const NodeOperand& operand : node.operands) {
    if (!slots[static_cast<size_t>(operand.slot)].older || operand.written) continue;
    const Use& use = uses_.try_emplace(operand.slot, Use{call}).first->second;
    const uint64_t kind = absl::HashOf(node.alike_hash, operand.arg, operand.item);
    const size_t first = reads_.try_emplace({operand.slot, kind}, call).first->second;
    if (first < use.last_update) repeated = std::min(repeated, first);
  }
  for (const NodeOperand& operand : node.operands) {
    const auto use = operand.written ? uses_.find(operand.slot) : uses_.end();
    if (use != uses_.end()) use->second.last_update = call;
  }
  return repeated;
}

// Of the places behind calls [begin, end) where an update of what was read is the last call.
size_t UnlikeSteps::BestEnd(const Calls& calls, const Slots& slots, const std::vector<Range>& whole, size_t begin,
                            size_t end) const {
  std::vector<size_t> places;
  const auto is_amid = [&](size_t place) {
    return std::ranges::any_of(whole, [&](const Range& range) { return range.begin < place && place < range.end; });
  };
  for (size_t k = begin; k < end; ++k) {
    const auto updates = [&](const NodeOperand& operand) {
      const auto use = uses_.find(operand.slot);
      return operand.written && use != uses_.end() && use->second.first_read < k;
    };
    if (std::ranges::any_of(calls[k]->operands, updates) && !is_amid(k + 1)) places.push_back(k + 1);
  }
  const std::vector<int64_t> bytes = BytesHandedOver(calls, slots, begin, end);
  int64_t least = INT64_MAX;
  for (const size_t place : places) least = std::min(least, bytes[place - begin]);
  const auto is_best = [&](size_t place) { return bytes[place - begin] <= NearlyLeast(least); };
  const auto best = std::find_if(places.rbegin(), places.rend(), is_best);
  return best == places.rend() ? 0 : *best;
}

size_t UnlikeSteps::Advance(const Calls& calls, const Slots& slots, const std::vector<Range>& whole) {
  size_t has_ended = 0;
  while (seen_ < calls.size()) {
    const size_t call = seen_++;
    const size_t repeated = Note(calls, slots, call);
    const size_t end = repeated == call ? 0 : BestEnd(calls, slots, whole, repeated, call);
    has_ended = end >= newest_end_ + kFewestCalls ? end : 0;
    if (end == 0) continue;
    newest_end_ = end;
    uses_.clear();
    reads_.clear();
    for (size_t k = end; k <= call; ++k) Note(calls, slots, k);
  }
  return has_ended;
}

uint64_t UnlikeSteps::Tail(const Calls& calls, const Slots& slots, size_t end) {
  constexpr size_t kTail = 4;
  if (end < kTail) return 0;
  const auto& operands = calls[end - 1]->operands;
  const auto last = std::find_if(operands.rbegin(), operands.rend(), [&](const NodeOperand& operand) {
    return operand.written && slots[static_cast<size_t>(operand.slot)].older;
  });
  if (last == operands.rend()) return 0;
  uint64_t tail = slots[static_cast<size_t>(last->slot)].serial;
  for (size_t k = end - kTail; k < end; ++k) tail = absl::HashOf(tail, calls[k]->alike_hash);
  return tail;
}

}  // namespace torch_lazy::lazy
