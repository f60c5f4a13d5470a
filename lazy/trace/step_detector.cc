// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace/step_detector.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "backends/registry.h"

namespace torch_lazy::lazy {
namespace {

constexpr size_t kLargePureStep =
    256 << 20;  // bytes of results: 0.1 ms of a large GPU's memory, twice what a dozen calls take to record
constexpr size_t kLongPureStep = 128;            // calls take longer to record than a cut does
constexpr uint64_t kBase = 0x9e3779b97f4a7c15u;  // odd: a polynomial hash modulo 2^64

bool IsForGpu() {
  static const bool is_for_gpu = backends::Get().target() == codegen::Target::kCuda;
  return is_for_gpu;
}

}  // namespace

uint64_t StepDetector::WriteSignature(const TrieNode& call) {
  uint64_t signature = 0;
  for (const NodeOperand& operand : call.operands) {
    if (operand.written) signature = absl::HashOf(signature, operand.slot, call.words_hash);
  }
  return signature;
}

bool StepDetector::Repeats(const Calls& calls, const Slots& slots, size_t period) {
  const size_t end = calls.size();
  bool writes_older = false;
  for (size_t k = end - period; k < end; ++k) {
    const TrieNode& now = *calls[k];
    const TrieNode& before = *calls[k - period];
    if (now.op != before.op || now.words() != before.words()) return false;
    for (size_t i = 0; i < now.operands.size(); ++i) {
      const int32_t slot = now.operands[i].slot;
      const int32_t slot_before = before.operands[i].slot;
      if (slot == slot_before) {
        writes_older = writes_older || now.operands[i].written;
      } else if (k - slots[slot].first_call != k - period - slots[slot_before].first_call) {
        return false;
      }
    }
  }
  return writes_older;
}

void StepDetector::NoteRepeat(size_t call, uint64_t words_hash) {
  const size_t end = call + 1;
  const size_t distance = call - std::exchange(last_call_.try_emplace(words_hash, call).first->second, call);
  if (distance == 0 || end < 2 * distance) return;
  if (HashOfRange(end - distance, end) == HashOfRange(end - 2 * distance, end - distance)) repeated_ = distance;
}

bool StepDetector::RepeatsPurely(const Calls& calls, const Slots& slots, size_t period) {
  const size_t end = calls.size();
  // Memory that nobody had filled is made by the trace like a result.
  const auto is_input = [&](const TraceSlot& slot) {
    return slot.external && (slot.older || slot.first_call < end - 2 * period);
  };
  for (size_t k = end - period; k < end; ++k) {
    const TrieNode& now = *calls[k];
    const TrieNode& before = *calls[k - period];
    if (now.op != before.op || now.words() != before.words()) return false;
    for (size_t i = 0; i < now.operands.size(); ++i) {
      const TraceSlot& slot = slots[now.operands[i].slot];
      const TraceSlot& slot_before = slots[before.operands[i].slot];
      if (is_input(slot) && is_input(slot_before) && !now.operands[i].written) continue;
      if (slot.older || slot.first_call < end - period || slot.first_call - period != slot_before.first_call)
        return false;
    }
  }
  return true;
}

bool StepDetector::HasPureSteps(const Calls& calls, const Slots& slots, size_t period, size_t least_bytes) const {
  const size_t end = calls.size();
  if (end < 2 * period) return false;
  if (HashOfRange(end - period, end) != HashOfRange(end - 2 * period, end - period) ||
      !RepeatsPurely(calls, slots, period))
    return false;
  size_t made = 0, held = 0;
  for (const TraceSlot& slot : slots) {
    if (slot.older || slot.first_call < end - 2 * period || slot.first_call >= end - period) continue;
    made += slot.size_bytes;
    if (slot.owner != nullptr) held += slot.size_bytes;
  }
  return made >= least_bytes && held > 0 && held <= made / 2;
}

// So many calls that they are worth a trace: of one step, or of several short ones.
size_t StepDetector::PeriodOfPureSteps(const Calls& calls, const Slots& slots) const {
  if (repeated_ == 0) return 0;
  if (HasPureSteps(calls, slots, repeated_, kLargePureStep)) return repeated_;
  const size_t period = (kLongPureStep + repeated_ - 1) / repeated_ * repeated_;
  return HasPureSteps(calls, slots, period, /*least_bytes=*/0) ? period : 0;
}

ClosedStep StepDetector::Advance(const Calls& calls, const Slots& slots) {
  size_t period = 0;
  while (prefix_.size() <= calls.size()) {
    const size_t call = prefix_.size() - 1;
    prefix_.push_back(prefix_.back() * kBase + calls[call]->words_hash);
    power_.push_back(power_.back() * kBase);
    if (IsForGpu()) NoteRepeat(call, calls[call]->words_hash);
    const uint64_t signature = WriteSignature(*calls[call]);
    if (signature == 0) continue;
    auto [last, is_new] = last_write_.try_emplace(signature, call);
    const size_t distance = call - last->second;
    last->second = call;
    const size_t end = call + 1;
    if (is_new || end < 2 * distance || end < calls.size()) continue;
    if (HashOfRange(end - distance, end) == HashOfRange(end - 2 * distance, end - distance) &&
        Repeats(calls, slots, distance)) {
      period = distance;
    }
  }
  if (period != 0) return {period, /*is_pure=*/false};
  period = PeriodOfPureSteps(calls, slots);
  return {period, /*is_pure=*/period != 0};
}

}  // namespace torch_lazy::lazy
