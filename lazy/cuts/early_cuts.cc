// SPDX-License-Identifier: Apache-2.0
#include "lazy/cuts/early_cuts.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "backends/registry.h"
#include "base/fingerprint.h"
#include "base/flags.h"
#include "lazy/host/background.h"
#include "lazy/ops/deterministic.h"
#include "lazy/trace/call_sequence.h"

namespace torch_lazy::lazy {
namespace {

constexpr int64_t kFewestBytes = 256 << 20;  // of results: as a large pure step (step_detector.cc)
constexpr int kWaits = 2;
constexpr size_t kFewestParts = 4, kMostParts = 9;
constexpr size_t kCallsOfPart = 64, kCallsOfLaunchedPart = 32;  // on average
constexpr size_t kShortest = 16;                                // calls of a part
constexpr size_t kNear = 32;  // calls, of which one kernel may do both the first and the last

// How long parts are, relative to each other: 2, 3, 4, 5, 6, 7, 6, 4, 2.
std::vector<size_t> LengthsOfParts(size_t num_calls, size_t calls_of_part) {
  std::vector<size_t> lengths(std::clamp(num_calls / calls_of_part, kFewestParts, kMostParts));
  for (size_t i = 0; i < lengths.size(); ++i) lengths[i] = std::min(2 + i, 2 * (lengths.size() - i));
  return lengths;
}

// What other calls read and make lies in memory, whoever makes or reads it.
bool IsFused(const TrieNode& call) { return call.op->is_lowered() && !call.op->Has(kProduct); }

// For each number of calls, the bytes that kernels read and write more if the trace is cut there. A value that one
// kernel would hold between two calls is read again, and stored if nobody else wants it.
std::vector<int64_t> CostsOfCuts(const Trace& trace) {
  const size_t n = trace.path.size();
  std::vector<int64_t> costs(n + 1, 0);
  std::vector<size_t> touched(trace.slots.size(), n);  // by which call, the last time
  for (size_t k = 0; k < n; ++k) {
    const TrieNode& call = *trace.path[k];
    for (const NodeOperand& operand : call.operands) {
      const Trace::Slot& slot = trace.slots[operand.slot];
      const size_t before = std::exchange(touched[operand.slot], k);
      if (slot.older || before == k || before + kNear < k || before == n) continue;
      if (!IsFused(*trace.path[before]) || !IsFused(call)) continue;
      const bool is_stored = !operand.written && slot.calls_at_death > k + kNear;
      const int64_t cost = static_cast<int64_t>(slot.size_bytes) * (is_stored ? 1 : 2);
      costs[before + 1] += cost;
      costs[k + 1] -= cost;
    }
    int32_t result_slot = call.first_result_slot;
    for (const ResultShape& result : call.shape->results) {
      if (result.defined && result.arg < 0) touched[result_slot++] = k;
    }
  }
  std::partial_sum(costs.begin(), costs.end(), costs.begin());
  return costs;
}

size_t Distance(size_t a, size_t b) { return a > b ? a - b : b - a; }

// The cheapest place near this one.
size_t BestNear(size_t place, size_t reach, const std::vector<int64_t>& costs) {
  size_t best = place;
  for (size_t k = place - reach; k <= place + reach; ++k) {
    if (costs[k] < costs[best] || (costs[k] == costs[best] && Distance(k, place) < Distance(best, place))) best = k;
  }
  return best;
}

// What the cuts of such calls are called on disk.
std::string NameOfCuts(const Trace& trace) {
  std::string names;
  AppendNames(trace.path, &names);
  return absl::StrCat("early ", base::FingerprintOf(names).ToString());
}

// Where a former process has cut such calls; empty if it has not. Deterministic runs do not ask: cold ones and warm
// ones must agree.
std::vector<size_t> KeptCuts(const Trace& trace) {
  if (AreDeterministic(trace.settings())) return {};
  std::vector<size_t> cuts;
  for (absl::string_view word : absl::StrSplit(backends::Get().Recall(NameOfCuts(trace)), ' ', absl::SkipEmpty())) {
    size_t cut = 0;
    if (!absl::SimpleAtoi(word, &cut) || cut > trace.path.size() || (cuts.empty() ? cut != 0 : cut <= cuts.back()))
      return {};
    cuts.push_back(cut);
  }
  return !cuts.empty() && cuts.back() == trace.path.size() ? cuts : std::vector<size_t>();
}

}  // namespace

bool HasDeviceQueue() {
  static const bool has_queue = backends::Get().target() == codegen::Target::kCuda && !base::IsDisabled("early");
  return has_queue;
}

bool IsEarlyPart(const Trace& trace) { return trace.path.back()->waits == TrieNode::kIsPart; }

bool BeginsEarly(const Trace& trace, bool host_waits) {
  if (trace.path.empty() || IsEarlyPart(trace) || trace.path.front()->parent != trace.trie->root()) return false;
  int8_t& waits = trace.path.back()->waits;
  waits = host_waits ? static_cast<int8_t>(std::min(waits + 1, kWaits)) : int8_t{0};
  if (waits == 0 || trace.replays || trace.period != 0 || trace.path.size() < kFewestEarlyCalls ||
      trace.new_bytes < kFewestBytes || !HasDeviceQueue())
    return false;
  if (waits < kWaits && trace.follows_wait && !KeptCuts(trace).empty()) waits = kWaits;
  return waits == kWaits;
}

std::vector<size_t> EarlyCuts(const Trace& trace, std::vector<size_t> cuts) {
  if (std::vector<size_t> kept = KeptCuts(trace); !kept.empty()) return kept;
  cuts = WithEarlyCuts(trace, std::move(cuts));
  if (!AreDeterministic(trace.settings()))
    InBackground([name = NameOfCuts(trace), cuts] { backends::Get().Keep(name, absl::StrJoin(cuts, " ")); });
  return cuts;
}

std::vector<size_t> WithEarlyCuts(const Trace& trace, std::vector<size_t> cuts, bool is_launched) {
  const size_t n = trace.path.size();
  const std::vector<size_t> lengths = LengthsOfParts(n, is_launched ? kCallsOfLaunchedPart : kCallsOfPart);
  const size_t whole = std::accumulate(lengths.begin(), lengths.end(), size_t{0});
  const std::vector<int64_t> costs = CostsOfCuts(trace);
  std::vector<size_t> places;
  size_t end = 0;
  for (size_t i = 0; i + 1 < lengths.size(); ++i) {
    end += lengths[i];
    const size_t reach = std::min(lengths[i], lengths[i + 1]) * n / (2 * whole);
    places.push_back(BestNear(end * n / whole, reach > 0 ? reach - 1 : 0, costs));
  }
  if (cuts.size() == 3) {
    places.erase(std::ranges::min_element(places, {}, [&](size_t place) { return Distance(place, cuts[1]); }));
  } else {
    std::erase_if(places, [&](size_t place) {
      return std::any_of(cuts.begin() + 1, cuts.end() - 1,
                         [&](size_t cut) { return Distance(place, cut) < kShortest; });
    });
  }
  cuts.insert(cuts.end(), places.begin(), places.end());
  std::ranges::sort(cuts);
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

}  // namespace torch_lazy::lazy
