// SPDX-License-Identifier: Apache-2.0
// Counts of what happened, for metrics() and the tests.
//
//   Count(Counter::kTraceHits);
//   Count(Tally::kCuts, "item");
//   const CountTime time(Counter::kRunSeconds);
//
// A fixed counter is one relaxed atomic. A tally counts by name under a lock; where that is too
// slow, keep the cell.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace torch_lazy::base {

// X(Enumerator, name, Kind). kCount and kSeconds (counted in nanoseconds) start anew at a reset,
// kGauge does not, and kPeak falls back to the gauge before it.
#define TORCH_LAZY_COUNTER_LIST(X)                   \
  X(CallsTotal, "calls_total", kCount)               \
  X(CallsCompiled, "calls_compiled", kCount)         \
  X(CallsRecorded, "calls_recorded", kCount)         \
  X(CallsImmediate, "calls_immediate", kCount)       \
  X(TracesRun, "traces_run", kCount)                 \
  X(TraceHits, "trace_hits", kCount)                 \
  X(TraceMisses, "trace_misses", kCount)             \
  X(TracesInterpreted, "traces_interpreted", kCount) \
  X(TracesAhead, "traces_ahead", kCount)             \
  X(TracesTakenBack, "traces_taken_back", kCount)    \
  X(EarlyReads, "early_reads", kCount)               \
  X(KernelsCompiled, "kernels_compiled", kCount)     \
  X(KernelsFromDisk, "kernels_from_disk", kCount)    \
  X(KernelsFailed, "kernels_failed", kCount)         \
  X(KernelLaunches, "kernel_launches", kCount)       \
  X(LibraryCalls, "library_calls", kCount)           \
  X(ResultsCopied, "results_copied", kCount)         \
  X(WeightsPacked, "weights_packed", kCount)         \
  X(ValuesCarried, "values_carried", kCount)         \
  X(GraphReplays, "graph_replays", kCount)           \
  X(LaneReplays, "lane_replays", kCount)             \
  X(Replays, "replays", kCount)                      \
  X(NodesInARow, "nodes_in_a_row", kCount)           \
  X(CompilesPending, "compiles_pending", kGauge)     \
  X(CompileSeconds, "compile_seconds", kSeconds)     \
  X(RunSeconds, "run_seconds", kSeconds)             \
  X(BytesLive, "bytes_live", kGauge)                 \
  X(BytesPeak, "bytes_peak", kPeak)

// X(Enumerator, name): counts by name.
#define TORCH_LAZY_TALLY_LIST(X)                 \
  X(CallsRecordedByOp, "calls_recorded_by_op")   \
  X(CallsImmediateByOp, "calls_immediate_by_op") \
  X(TunedProducts, "tuned_products")             \
  X(Syncs, "syncs")                              \
  X(Cuts, "cuts")

enum class Counter : uint8_t {
#define X(name, text, kind) k##name,
  TORCH_LAZY_COUNTER_LIST(X)
#undef X
};
enum class Tally : uint8_t {
#define X(name, text) k##name,
  TORCH_LAZY_TALLY_LIST(X)
#undef X
};

namespace internal {
std::atomic<int64_t>& CounterCell(Counter counter);
}

inline void Count(Counter counter, int64_t by = 1) {
  internal::CounterCell(counter).fetch_add(by, std::memory_order_relaxed);
}
inline int64_t Get(Counter counter) { return internal::CounterCell(counter).load(std::memory_order_relaxed); }
void RaiseTo(Counter peak, int64_t value);  // the larger of its value and this one

// Adds the time that it lives to a counter of seconds.
class CountTime {
 public:
  explicit CountTime(Counter counter) : counter_(counter) {}
  CountTime(const CountTime&) = delete;
  CountTime& operator=(const CountTime&) = delete;
  ~CountTime() { Count(counter_, std::chrono::nanoseconds(Clock::now() - start_).count()); }

 private:
  using Clock = std::chrono::steady_clock;
  Counter counter_;
  Clock::time_point start_ = Clock::now();
};

// The cell of a name stays valid for ever; a reset sets it to 0.
std::atomic<int64_t>& Cell(Tally tally, absl::string_view name);
void Count(Tally tally, absl::string_view name, int64_t by = 1);
int64_t Get(Tally tally, absl::string_view name);

std::vector<std::pair<std::string, int64_t>> List(Tally tally);  // sorted by name, without zeros
std::string MetricsJson();  // one object; keys in the order of the lists, tallies sorted by name,
                            // zeros left out there
void ResetMetrics();

}  // namespace torch_lazy::base
