// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace/step_detector.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "backends/registry.h"
#include "base/flags.h"
#include "lazy/eager/eager_device.h"
#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {
namespace {

constexpr size_t kLargePureStep =
    256 << 20;  // bytes of results: 0.1 ms of a large GPU's memory, twice what a dozen calls take to record
constexpr uint64_t kBase = 0x9e3779b97f4a7c15u;  // odd: a polynomial hash modulo 2^64

int64_t MaxTraceBytes() {
  constexpr int64_t kOfHost = int64_t{4} << 30;
  const int64_t chosen = base::Number(base::Option::kMaxTraceBytes);
  if (chosen != 0) return chosen;
  static const int64_t usual =
      GpuAllocator() == nullptr ? kOfHost
                                : static_cast<int64_t>(GpuAllocator()->getMemoryInfo(EagerDevice().index()).second / 2);
  return usual;
}

// True if the pure step that ends here shall not be its trace's last, and there is room for another.
bool WantsMorePureSteps(Trace* trace) {
  const int steps = ++trace->pure_steps;
  return steps < trace->pure_steps_wanted &&
         HasRoomFor(*trace, trace->path.size() / steps + 1, trace->new_bytes / steps);
}

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

bool StepDetector::Repeats(const Trace& trace, size_t period) {
  const size_t end = trace.path.size();
  bool writes_older = false;
  for (size_t k = end - period; k < end; ++k) {
    const TrieNode& now = *trace.path[k];
    const TrieNode& before = *trace.path[k - period];
    if (now.op != before.op || now.words() != before.words()) return false;
    for (size_t i = 0; i < now.operands.size(); ++i) {
      const int32_t slot = now.operands[i].slot;
      const int32_t slot_before = before.operands[i].slot;
      if (slot == slot_before) {
        writes_older = writes_older || now.operands[i].written;
      } else if (k - trace.slots[slot].first_call != k - period - trace.slots[slot_before].first_call) {
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

bool StepDetector::RepeatsPurely(const Trace& trace, size_t period) {
  const size_t end = trace.path.size();
  // Memory that nobody had filled is made by the trace like a result.
  const auto is_input = [&](const Trace::Slot& slot) {
    return slot.external && (slot.older || slot.first_call < end - 2 * period);
  };
  for (size_t k = end - period; k < end; ++k) {
    const TrieNode& now = *trace.path[k];
    const TrieNode& before = *trace.path[k - period];
    if (now.op != before.op || now.words() != before.words()) return false;
    for (size_t i = 0; i < now.operands.size(); ++i) {
      const Trace::Slot& slot = trace.slots[now.operands[i].slot];
      const Trace::Slot& slot_before = trace.slots[before.operands[i].slot];
      if (is_input(slot) && is_input(slot_before) && !now.operands[i].written) continue;
      if (slot.older || slot.first_call < end - period || slot.first_call - period != slot_before.first_call)
        return false;
    }
  }
  return true;
}

bool StepDetector::HasPureStep(const Trace& trace, size_t period) const {
  const size_t end = trace.path.size();
  if (period == 0 || end < 2 * period) return false;
  if (HashOfRange(end - period, end) != HashOfRange(end - 2 * period, end - period) || !RepeatsPurely(trace, period))
    return false;
  size_t made = 0, held = 0;
  for (const Trace::Slot& slot : trace.slots) {
    if (slot.older || slot.first_call < end - 2 * period || slot.first_call >= end - period) continue;
    made += slot.size_bytes;
    if (slot.owner != nullptr) held += slot.size_bytes;
  }
  return made >= kLargePureStep && held > 0 && held <= made / 2;
}

ClosedStep StepDetector::Advance(const Trace& trace) {
  size_t period = 0;
  while (prefix_.size() <= trace.path.size()) {
    const size_t call = prefix_.size() - 1;
    prefix_.push_back(prefix_.back() * kBase + trace.path[call]->words_hash);
    power_.push_back(power_.back() * kBase);
    if (IsForGpu()) NoteRepeat(call, trace.path[call]->words_hash);
    const uint64_t signature = WriteSignature(*trace.path[call]);
    if (signature == 0) continue;
    auto [last, is_new] = last_write_.try_emplace(signature, call);
    const size_t distance = call - last->second;
    last->second = call;
    const size_t end = call + 1;
    if (is_new || end < 2 * distance || end < trace.path.size()) continue;
    if (HashOfRange(end - distance, end) == HashOfRange(end - 2 * distance, end - distance) &&
        Repeats(trace, distance)) {
      period = distance;
    }
  }
  if (period != 0) return {period, /*is_pure=*/false};
  return HasPureStep(trace, repeated_) ? ClosedStep{repeated_, /*is_pure=*/true} : ClosedStep{};
}

const char* MustCut(Trace* trace, bool grown) {
  Expected& at = *trace->at;
  // A trace on a known path need not look again: where it held several steps is written at the node.
  if (const ClosedStep step = grown ? trace->steps.Advance(*trace) : ClosedStep{}; step.period != 0) {
    at.is_pure = step.is_pure;
    at.node->trie.MarkStep(&at, step.is_pure && trace->pure_steps_wanted > 1 ? 0 : static_cast<uint32_t>(step.period));
  }
  const bool holds_several = at.is_pure && trace->pure_steps_wanted > 1;
  if (at.ends_trace() && !(at.is_pure && WantsMorePureSteps(trace))) {
    trace->period = at.closes_step || holds_several ? 0 : at.period;
    trace->ends_step = !grown || holds_several;
    return trace->ends_step ? nullptr : "step";
  }
  if (trace->path.size() >= static_cast<size_t>(base::Number(base::Option::kMaxTraceOps))) return "length";
  if (trace->new_bytes >= MaxTraceBytes()) return "bytes";
  return nullptr;
}

int PureStepsAfter(const Trace& trace, bool shares_launches) {
  constexpr int kTimes = 4;
  return trace.at->is_pure && shares_launches
             ? std::min(kTimes * trace.pure_steps_wanted, codegen::Kernel::Exact::kMost)
             : 1;
}

bool HasRoomFor(const Trace& trace, size_t calls, int64_t bytes) {
  return trace.path.size() + calls < static_cast<size_t>(base::Number(base::Option::kMaxTraceOps)) &&
         trace.new_bytes + bytes < MaxTraceBytes();
}

}  // namespace torch_lazy::lazy
