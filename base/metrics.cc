// SPDX-License-Identifier: Apache-2.0
#include "base/metrics.h"

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"

namespace torch_lazy::base {
namespace {

enum class CounterKind : uint8_t { kCount, kGauge, kPeak, kSeconds };
struct CounterInfo {
  absl::string_view name;
  CounterKind kind;
};
constexpr CounterInfo kCounters[] = {
#define X(name, text, kind) {text, CounterKind::kind},
    TORCH_LAZY_COUNTER_LIST(X)
#undef X
};
constexpr absl::string_view kTallies[] = {
#define X(name, text) text,
    TORCH_LAZY_TALLY_LIST(X)
#undef X
};

struct NamedCounts {
  absl::Mutex mutex;
  std::array<std::map<std::string, std::unique_ptr<std::atomic<int64_t>>, std::less<>>, std::size(kTallies)> maps;
};

NamedCounts& Named() {
  static NamedCounts* counts = new NamedCounts;  // leaked: cells outlive every user
  return *counts;
}

std::string Quoted(absl::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return quoted + '"';
}

}  // namespace

std::atomic<int64_t>& internal::CounterCell(Counter counter) {
  // Each in a cache line of its own: two threads count different things.
  struct alignas(64) Line {
    std::atomic<int64_t> cell{0};
  };
  static constinit std::array<Line, std::size(kCounters)> lines{};
  return lines[static_cast<size_t>(counter)].cell;
}

void RaiseTo(Counter peak, int64_t value) {
  std::atomic<int64_t>& cell = internal::CounterCell(peak);
  int64_t seen = cell.load(std::memory_order_relaxed);
  while (seen < value && !cell.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

std::atomic<int64_t>& Cell(Tally tally, absl::string_view name) {
  NamedCounts& named = Named();
  absl::MutexLock lock(&named.mutex);
  auto& map = named.maps[static_cast<size_t>(tally)];
  auto found = map.find(name);
  if (found == map.end()) found = map.emplace(std::string(name), std::make_unique<std::atomic<int64_t>>(0)).first;
  return *found->second;
}

void Count(Tally tally, absl::string_view name, int64_t by) {
  Cell(tally, name).fetch_add(by, std::memory_order_relaxed);
}

int64_t Get(Tally tally, absl::string_view name) { return Cell(tally, name).load(std::memory_order_relaxed); }

std::vector<std::pair<std::string, int64_t>> List(Tally tally) {
  NamedCounts& named = Named();
  absl::MutexLock lock(&named.mutex);
  std::vector<std::pair<std::string, int64_t>> counts;
  for (const auto& [name, cell] : named.maps[static_cast<size_t>(tally)]) {
    const int64_t value = cell->load(std::memory_order_relaxed);
    if (value != 0) counts.emplace_back(name, value);
  }
  return counts;
}

std::string MetricsJson() {
  std::vector<std::string> fields;
  for (size_t i = 0; i < std::size(kCounters); ++i) {
    const int64_t value = Get(static_cast<Counter>(i));
    const bool seconds = kCounters[i].kind == CounterKind::kSeconds;
    fields.push_back(absl::StrCat(Quoted(kCounters[i].name), ": ",
                                  seconds ? absl::StrCat(static_cast<double>(value) * 1e-9) : absl::StrCat(value)));
  }
  for (size_t i = 0; i < std::size(kTallies); ++i) {
    std::vector<std::string> counts;
    for (const auto& [name, value] : List(static_cast<Tally>(i)))
      counts.push_back(absl::StrCat(Quoted(name), ": ", value));
    fields.push_back(absl::StrCat(Quoted(kTallies[i]), ": {", absl::StrJoin(counts, ", "), "}"));
  }
  return absl::StrCat("{", absl::StrJoin(fields, ", "), "}");
}

void ResetMetrics() {
  int64_t last_gauge = 0;
  for (size_t i = 0; i < std::size(kCounters); ++i) {
    const Counter counter = static_cast<Counter>(i);
    switch (kCounters[i].kind) {
      case CounterKind::kGauge:
        last_gauge = Get(counter);
        break;
      case CounterKind::kPeak:
        internal::CounterCell(counter).store(last_gauge, std::memory_order_relaxed);
        break;
      case CounterKind::kCount:
      case CounterKind::kSeconds:
        internal::CounterCell(counter).store(0, std::memory_order_relaxed);
        break;
    }
  }
  NamedCounts& named = Named();
  absl::MutexLock lock(&named.mutex);
  for (auto& map : named.maps) {
    for (auto& [name, cell] : map) cell->store(0, std::memory_order_relaxed);
  }
}

}  // namespace torch_lazy::base
