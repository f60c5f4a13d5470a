// SPDX-License-Identifier: Apache-2.0
#include "lazy/closing.h"

#include "absl/hash/hash.h"
#include "base/flags.h"
#include "lazy/trace.h"

namespace torch_lazy::lazy {
namespace {

constexpr uint64_t kBase = 0x9e3779b97f4a7c15u;  // odd: a polynomial hash modulo 2^64

}  // namespace

uint64_t StepDetector::SignatureOf(const Trace& trace, size_t call, uint64_t* written) const {
  const TrieNode& node = *trace.path[call];
  uint64_t signature = node.words_hash;
  for (const NodeOperand& operand : node.operands) {
    const Trace::Slot& slot = trace.slots[operand.slot];
    // A storage made while the trace was pending (a batch of data) is known by its distance, like the trace's own.
    const bool older = slot.external && slot.serial < trace.first_serial;
    const uint64_t id = older ? slot.serial : call - slot.first_call;
    signature = absl::HashOf(signature, older, id);
    if (operand.written && older) *written = 1;
  }
  return signature;
}

size_t StepDetector::Advance(const Trace& trace) {
  size_t period = 0;
  while (prefix_.size() <= trace.path.size()) {
    const size_t call = prefix_.size() - 1;
    uint64_t written = 0;
    const uint64_t signature = SignatureOf(trace, call, &written);
    prefix_.push_back(prefix_.back() * kBase + signature);
    power_.push_back(power_.back() * kBase);
    if (written == 0) continue;
    auto [last, is_new] = last_write_.try_emplace(signature, call);
    const size_t distance = call - last->second;
    last->second = call;
    const size_t end = call + 1;
    if (is_new || end < 2 * distance) continue;
    if (HashOfRange(end - distance, end) == HashOfRange(end - 2 * distance, end - distance)) period = distance;
  }
  return period;
}

const char* MustCut(Trace* trace, bool grown) {
  if (trace->at->closes_step) return "step";
  // A trace that follows a known path to its end is cut there; only one that goes on beyond can hold a second step.
  if (grown && (trace->period = trace->steps.Advance(*trace)) != 0) return "step";
  if (trace->path.size() >= static_cast<size_t>(base::Number(base::Option::kMaxTraceOps))) return "length";
  if (trace->new_bytes >= base::Number(base::Option::kMaxTraceBytes)) return "bytes";
  return nullptr;
}

}  // namespace torch_lazy::lazy
