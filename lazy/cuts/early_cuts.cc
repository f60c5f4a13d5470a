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

constexpr size_t kFewestCalls = 128;         // take longer to record than three cuts do
constexpr int64_t kFewestBytes = 256 << 20;  // of results: as a large pure step (step_detector.cc)
constexpr int kWaits = 2;
constexpr size_t kNear = 16;  // a cut may lie a 16th of the trace from its place

bool HasQueue() {
  static const bool has_queue = backends::Get().target() == codegen::Target::kCuda && !base::IsDisabled("early");
  return has_queue;
}

// After each number of calls, the bytes of results that are there and die soon.
std::vector<int64_t> PassingBytes(const Trace& trace) {
  const size_t n = trace.path.size();
  std::vector<int64_t> bytes(n + 1, 0);
  for (const Trace::Slot& slot : trace.slots) {
    const size_t made = slot.first_call + size_t{1}, death = slot.calls_at_death;
    if (slot.older || death <= made || death - made > n / kNear) continue;
    bytes[made] += static_cast<int64_t>(slot.size_bytes);
    bytes[std::min(death, n)] -= static_cast<int64_t>(slot.size_bytes);
  }
  for (size_t k = 1; k <= n; ++k) bytes[k] += bytes[k - 1];
  return bytes;
}

size_t Distance(size_t a, size_t b) { return a > b ? a - b : b - a; }

// The place near this one where the fewest bytes pass.
size_t BestNear(size_t place, const std::vector<int64_t>& bytes) {
  const size_t reach = (bytes.size() - 1) / kNear;
  size_t best = place;
  for (size_t k = place - reach; k <= place + reach; ++k) {
    if (bytes[k] < bytes[best] || (bytes[k] == bytes[best] && Distance(k, place) < Distance(best, place))) best = k;
  }
  return best;
}

}  // namespace

bool IsEarlyPart(const Trace& trace) { return trace.path.back()->waits == TrieNode::kIsPart; }

bool BeginsEarly(const Trace& trace, bool host_waits) {
  if (trace.path.empty() || IsEarlyPart(trace)) return false;
  int8_t& waits = trace.path.back()->waits;
  waits = host_waits ? static_cast<int8_t>(std::min(waits + 1, kWaits)) : int8_t{0};
  return waits == kWaits && !trace.replays && trace.period == 0 && trace.path.size() >= kFewestCalls &&
         trace.new_bytes >= kFewestBytes && HasQueue();
}

std::vector<size_t> WithEarlyCuts(const Trace& trace, std::vector<size_t> cuts) {
  const size_t n = trace.path.size();
  std::array<size_t, 3> places{n / 8, 3 * n / 8, 3 * n / 4};
  const std::vector<int64_t> bytes = PassingBytes(trace);
  const auto taken = cuts.size() == 3
                         ? std::ranges::min_element(places, {}, [&](size_t place) { return Distance(place, cuts[1]); })
                         : places.end();
  for (auto place = places.begin(); place != places.end(); ++place) {
    if (place != taken) cuts.push_back(BestNear(*place, bytes));
  }
  std::ranges::sort(cuts);
  return cuts;
}

}  // namespace torch_lazy::lazy
