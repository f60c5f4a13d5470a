// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace/step_detector.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "backends/registry.h"
#include "lazy/trace/handed_over.h"

namespace torch_lazy::lazy {
namespace {

constexpr size_t kLargePureStep =
    256 << 20;  // bytes of results: 0.1 ms of a large GPU's memory, twice what a dozen calls take to record
constexpr size_t kLongPureStep = 128;  // calls take longer to record than a cut does
constexpr size_t kFewestBetween = 16;  // calls from an update to the next step's: of a forward and a backward pass
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

bool StepDetector::AreLike(const TrieNode& one, const TrieNode& other, Likeness likeness) {
  if (one.op != other.op) return false;
  if (likeness == Likeness::kEqual) return one.words() == other.words();
  const auto is_like = [](const NodeOperand& a, const NodeOperand& b) {
    return a.arg == b.arg && a.item == b.item && a.geometry.dtype == b.geometry.dtype &&
           a.geometry.sizes.size() == b.geometry.sizes.size();
  };
  return std::ranges::equal(one.words(), other.words(), {}, WithoutSize, WithoutSize) &&
         std::ranges::equal(one.operands, other.operands, is_like);
}

bool StepDetector::Repeats(const Calls& calls, const Slots& slots, size_t period, bool on_the_same, Likeness likeness) {
  const size_t end = calls.size();
  bool updates = false, has_other_sizes = false;
  size_t same = 0, others = 0;  // operands that the period has not made
  for (size_t k = end - period; k < end; ++k) {
    const TrieNode& now = *calls[k];
    const TrieNode& before = *calls[k - period];
    if (!AreLike(now, before, likeness)) return false;
    for (size_t i = 0; i < now.operands.size(); ++i) {
      const int32_t slot = now.operands[i].slot;
      const int32_t slot_before = before.operands[i].slot;
      has_other_sizes = has_other_sizes || now.operands[i].geometry.sizes != before.operands[i].geometry.sizes;
      if (slot == slot_before) {
        updates = updates || now.operands[i].written;
        ++same;
      } else if (k - slots[slot].first_call != k - period - slots[slot_before].first_call) {
        return false;
      } else {
        others += slots[slot].external;
      }
    }
  }
  return updates && (!on_the_same || same >= others) && (likeness == Likeness::kEqual || has_other_sizes);
}

void StepDetector::NoteRepeat(size_t call, uint64_t words_hash) {
  const size_t end = call + 1;
  const size_t distance = call - std::exchange(last_call_.try_emplace(words_hash, call).first->second, call);
  if (distance == 0 || end < 2 * distance) return;
  if (HashesRepeat(end, distance, equal_)) repeated_ = distance;
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
    if (!AreLike(now, before, Likeness::kEqual)) return false;
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
  if (!HashesRepeat(end, period, equal_) || !RepeatsPurely(calls, slots, period)) return false;
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

bool StepDetector::IsPeriod(const Calls& calls, const Slots& slots, size_t period, bool on_the_same,
                            Likeness likeness) const {
  const size_t end = calls.size();
  return end >= 2 * period && HashesRepeat(end, period, likeness == Likeness::kEqual ? equal_ : alike_) &&
         Repeats(calls, slots, period, on_the_same, likeness);
}

// A step that writes a storage several times, as an update for each of four minibatches does, has so many distances.
// So have layers, where autograd adds to one gradient; their weights are others.
size_t StepDetector::PeriodOfUpdates(const Calls& calls, const Slots& slots, Likeness likeness) const {
  constexpr int kMostWrites = 64;
  const size_t newest = calls.size() - 1;
  size_t place = newest;
  for (int k = 0; k < kMostWrites && same_write_[place] != place; ++k) {
    place = same_write_[place];
    const bool on_the_same = k > 0 || likeness == Likeness::kAlike;
    if (IsPeriod(calls, slots, newest - place, on_the_same, likeness)) return newest - place;
  }
  return 0;
}

size_t StepDetector::CallsToBestEnd(const Calls& calls, const Slots& slots, size_t period) {
  const size_t begin = calls.size() - 2 * period;
  std::vector<bool> updates(2 * period, false);  // per call: whether it writes what is older
  for (size_t k = begin; k < calls.size(); ++k) {
    for (const NodeOperand& operand : calls[k]->operands) {
      const TraceSlot& used = slots[static_cast<size_t>(operand.slot)];
      if (operand.written && (used.older || used.first_call < begin)) updates[k - begin] = true;
    }
  }
  const std::vector<int64_t> bytes = BytesHandedOver(calls, slots, begin, calls.size());
  const auto end = bytes.begin() + static_cast<ptrdiff_t>(period);
  const auto least = std::min_element(bytes.begin(), end);
  size_t best = 0, longest = kFewestBetween;
  for (size_t k = 0; k < period; ++k) {
    const bool is_behind_update = updates[k == 0 ? period - 1 : k - 1];
    if (!is_behind_update || bytes[k] > NearlyLeast(*least)) continue;
    const auto from = updates.begin() + static_cast<ptrdiff_t>(k);
    const size_t between = static_cast<size_t>(std::find(from, updates.end(), true) - from);
    if (between <= longest) continue;
    longest = between;
    best = k;
  }
  if (longest > kFewestBetween) return best;
  return bytes[0] <= 2 * *least ? 0 : static_cast<size_t>(least - bytes.begin());
}

size_t StepDetector::PeriodThatEndsHere(const Calls& calls, const Slots& slots) {
  const size_t end = calls.size();
  if (end >= awaited_end_) {
    const bool has_come = std::exchange(awaited_end_, SIZE_MAX) == end;
    if (has_come && IsPeriod(calls, slots, awaited_period_, /*on_the_same=*/false, awaited_likeness_))
      return awaited_period_;
  }
  if (awaited_end_ != SIZE_MAX) return 0;
  size_t period = 0;
  for (const Likeness likeness : {Likeness::kEqual, Likeness::kAlike}) {
    awaited_likeness_ = likeness;
    period = PeriodOfUpdates(calls, slots, likeness);
    if (period != 0) break;
  }
  const size_t more = period == 0 ? 0 : CallsToBestEnd(calls, slots, period);
  if (more == 0) return period;
  awaited_end_ = end + more;
  awaited_period_ = period;
  return 0;
}

ClosedStep StepDetector::Advance(const Calls& calls, const Slots& slots) {
  while (power_.size() <= calls.size()) {
    const size_t call = power_.size() - 1;
    const TrieNode& node = *calls[call];
    equal_.before.push_back(equal_.before.back() * kBase + node.words_hash);
    alike_.before.push_back(alike_.before.back() * kBase + node.alike_hash);
    power_.push_back(power_.back() * kBase);
    if (IsForGpu()) NoteRepeat(call, calls[call]->words_hash);
    same_write_.push_back(call);
    if (const uint64_t signature = WriteSignature(*calls[call]); signature != 0)
      same_write_.back() = std::exchange(last_write_.try_emplace(signature, call).first->second, call);
  }
  if (const size_t period = PeriodThatEndsHere(calls, slots); period != 0) return {period, /*is_pure=*/false};
  const size_t period = PeriodOfPureSteps(calls, slots);
  return {period, /*is_pure=*/period != 0};
}

}  // namespace torch_lazy::lazy
