// SPDX-License-Identifier: Apache-2.0
#include "lazy/cuts/early_cuts.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "backends/registry.h"
#include "base/flags.h"

namespace torch_lazy::lazy {
namespace {

constexpr size_t kFewestCalls = 128;         // take longer to record than cuts do
constexpr int64_t kFewestBytes = 256 << 20;  // of results: as a large pure step (step_detector.cc)
constexpr int kWaits = 2;
constexpr size_t kFewestParts = 4, kMostParts = 8;
constexpr size_t kCallsOfPart = 64;

bool HasQueue() {
  static const bool has_queue = backends::Get().target() == codegen::Target::kCuda && !base::IsDisabled("early");
  return has_queue;
}

size_t NumParts(const Trace& trace) { return std::clamp(trace.path.size() / kCallsOfPart, kFewestParts, kMostParts); }

// After each number of calls, the bytes of results that are there and die within so many calls.
std::vector<int64_t> PassingBytes(const Trace& trace, size_t soon) {
  const size_t n = trace.path.size();
  std::vector<int64_t> bytes(n + 1, 0);
  for (const Trace::Slot& slot : trace.slots) {
    const size_t made = slot.first_call + size_t{1}, death = slot.calls_at_death;
    if (slot.older || death <= made || death - made > soon) continue;
    bytes[made] += static_cast<int64_t>(slot.size_bytes);
    bytes[std::min(death, n)] -= static_cast<int64_t>(slot.size_bytes);
  }
  for (size_t k = 1; k <= n; ++k) bytes[k] += bytes[k - 1];
  return bytes;
}

size_t Distance(size_t a, size_t b) { return a > b ? a - b : b - a; }

// The place near this one where the fewest bytes pass.
size_t BestNear(size_t place, size_t reach, const std::vector<int64_t>& bytes) {
  size_t best = place;
  for (size_t k = place - reach; k <= place + reach; ++k) {
    if (bytes[k] < bytes[best] || (bytes[k] == bytes[best] && Distance(k, place) < Distance(best, place))) best = k;
  }
  return best;
}

}  // namespace

bool IsEarlyPart(const Trace& trace) { return trace.path.back()->waits == TrieNode::kIsPart; }

bool BeginsEarly(const Trace& trace, bool host_waits) {
  if (trace.path.empty() || IsEarlyPart(trace) || trace.path.front()->parent != trace.trie->root()) return false;
  int8_t& waits = trace.path.back()->waits;
  waits = host_waits ? static_cast<int8_t>(std::min(waits + 1, kWaits)) : int8_t{0};
  return waits == kWaits && !trace.replays && trace.period == 0 && trace.path.size() >= kFewestCalls &&
         trace.new_bytes >= kFewestBytes && HasQueue();
}

std::vector<size_t> WithEarlyCuts(const Trace& trace, std::vector<size_t> cuts) {
  const size_t n = trace.path.size(), parts = NumParts(trace);
  const size_t half = n / (2 * (parts - 1));  // a part; the first and the last one are half as long
  const std::vector<int64_t> bytes = PassingBytes(trace, half);
  std::vector<size_t> places;
  for (size_t i = 0; i + 1 < parts; ++i) places.push_back((2 * i + 1) * n / (2 * (parts - 1)));
  if (cuts.size() == 3)
    places.erase(std::ranges::min_element(places, {}, [&](size_t place) { return Distance(place, cuts[1]); }));
  for (const size_t place : places) cuts.push_back(BestNear(place, half / 2, bytes));
  std::ranges::sort(cuts);
  return cuts;
}

}  // namespace torch_lazy::lazy
