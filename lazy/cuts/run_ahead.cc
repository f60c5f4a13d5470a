// SPDX-License-Identifier: Apache-2.0
#include "lazy/cuts/run_ahead.h"

#include <atomic>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <c10/core/Storage.h>

#include "backends/registry.h"
#include "base/flags.h"
#include "base/metrics.h"
#include "base/spare_processors.h"
#include "lazy/cuda/graph_result.h"
#include "lazy/cuda/graphs.h"
#include "lazy/cuts/stay.h"
#include "lazy/eager/memory.h"
#include "lazy/eager/on_host.h"
#include "lazy/host/raise.h"
#include "lazy/host/run_thread.h"
#include "lazy/host/team.h"
#include "lazy/ops/call_settings.h"

namespace torch_lazy::lazy {
namespace {

// True if no launch of the trace is worth more than one thread. Where somebody waits for such a trace, it runs sooner
// here than on a thread of ours, which may have to be woken, and this thread's team sleeps on.
bool IsTiny(const Trace& trace) {
  constexpr size_t kTiny = 32 << 10;  // bytes
  size_t size_bytes = 0;
  for (const Trace::Slot& slot : trace.slots) size_bytes += slot.size_bytes;
  return size_bytes <= kTiny;
}

thread_local Stay stay;

// The last of them leaves no team that would spin.
bool StaysInProgram() {
  const bool was_on = stay.is_on(), stays = stay.Ask();
  if (was_on && !stays) DropTeam();
  return stays;
}

// A GPU's libraries ask PyTorch for their settings when they are called. A program that changes these between its calls
// may do so while the thread calls a library.
bool SettingsVary(uint32_t settings) {
  static std::atomic<uint32_t> first{0};
  static std::atomic<bool> vary{false};
  const uint32_t now = SettingsOfLibraries(settings) | 1u << 31;
  uint32_t before = 0;
  if (!first.compare_exchange_strong(before, now) && before != now) vary = true;
  return vary;
}

// What the run of a trace on a thread of ours must not be the last to own: memory that somebody else frees, and
// numbers.
struct Kept {
  std::shared_ptr<Trace> trace;
  std::vector<c10::Storage> contents;
};

std::shared_ptr<Kept> Prepare(const std::shared_ptr<Trace>& trace) {
  auto kept = std::make_shared<Kept>(Kept{trace, {}});
  Locked lock(DeviceLock());
  for (const Trace::Slot& slot : trace->slots) {
    if (slot.content && !IsAllocated(slot.content) && !IsLent(slot.content)) kept->contents.push_back(slot.content);
  }
  trace->final_slots = trace->slots.size();
  trace->final_numbers = trace->numbers.size();
  trace->after = nullptr;  // done, since the thread is free
  trace->is_ahead = true;
  return kept;
}

}  // namespace

bool MayRunAhead(const Trace& trace, const Entry& entry, bool waited) {
  if (trace.num_calls() == 0 || base::Number(base::Option::kOverlap) == 0 || !entry.RunsAhead() ||
      trace.settings() != CurrentSettings())
    return false;
  if (!IsOnHost()) {
    if (waited || base::NumAllowedProcessors() == 1 || SettingsVary(trace.settings())) return false;
    if (entry.replays()) return true;
    if (entry.ahead_by_replay()) return false;
    const Locked lock(DeviceLock());
    return trace.trie->IsPartOfAnySize(*trace.path.back());
  }
  return at::get_num_threads() > 1 && !(waited && (StaysInProgram() || IsTiny(trace)));
}

void StayInProgram() {
  if (!IsOnHost()) return;
  stay.Begin();
  DropTeam();  // it would hold up what is left to the thread next
}

bool RunAhead(const std::shared_ptr<Trace>& trace, RunsTrace run) {
  const Stream stream = CurrentStream();
  RunThread& thread = RunThread::Get();
  if (!thread.Acquire()) return false;
  std::shared_ptr<Kept> kept;
  try {
    kept = Prepare(trace);
  } catch (...) {
    thread.Post([](RunThread::Where) { return true; }, nullptr);
    throw;
  }
  auto run_it = [run = std::move(run), &trace = kept->trace, stream](RunThread::Where where) {
    return run(trace, stream, where);
  };
  base::Count(base::Counter::kTracesAhead);
  thread.Post(std::move(run_it), std::move(kept));
  return true;
}

OnThreadAhead::OnThreadAhead(const Trace& trace, const Stream& stream) : device_(DeviceOfSettings(trace.settings())) {
  RaiseIfError(backends::Get().Enter());
  stream_.emplace(stream);
}

void WaitForMoves() {
  if (FindCudaGraphs() != nullptr) RunThread::Get().DrainOwn();
}

}  // namespace torch_lazy::lazy
