// SPDX-License-Identifier: Apache-2.0
#include "lazy/cuts/cut.h"

#include <algorithm>
#include <condition_variable>
#include <utility>

#include <c10/core/impl/LocalDispatchKeySet.h>

#include "absl/cleanup/cleanup.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/metrics.h"
#include "lazy/cuda/graph_result.h"
#include "lazy/cuts/early_cuts.h"
#include "lazy/cuts/early_reads.h"
#include "lazy/cuts/growing_sizes.h"
#include "lazy/cuts/run_ahead.h"
#include "lazy/cuts/segments.h"
#include "lazy/eager/current_device.h"
#include "lazy/eager/memory.h"
#include "lazy/host/gil.h"
#include "lazy/host/raise.h"
#include "lazy/host/run_thread.h"
#include "lazy/host/team.h"
#include "lazy/ops/call_settings.h"
#include "lazy/ops/deterministic.h"
#include "lazy/trace/cut_rule.h"
#include "lazy/trace/history.h"
#include "lazy/trace/storage.h"
#include "lazy/trace/thread_trace.h"
#include "lazy/variants/entry.h"

namespace torch_lazy::lazy {
namespace {

std::condition_variable_any& TraceDone() {
  static auto* const done = new std::condition_variable_any;
  return *done;
}

// At a step's end, all that the program might wait for there: whether it does or goes on, the entry is the same.
std::vector<bool> LiveSlots(const Trace& trace) {
  std::vector<bool> live(trace.slots.size());
  const AliveAfter alive_after(trace, trace.path.size());
  for (size_t s = 0; s < live.size(); ++s) {
    const bool alive = trace.ends_step && !trace.ends_chunk ? alive_after(s) : trace.slots[s].owner != nullptr;
    live[s] = alive && trace.slots[s].written;
  }
  return live;
}

// The storage takes what the run has left in its slot, and is no longer part of the trace. Not so one that the trace
// should have made, or inherited, and did not: it has no value.
void GiveBack(const std::shared_ptr<Trace>& trace, Trace::Slot* slot) {
  LazyStorageImpl* owner = slot->owner;
  if (!trace->failure.empty() && !slot->content && (!slot->external || slot->inherits)) return;
  auto& touches = owner->touches;
  touches.erase(std::remove_if(touches.begin(), touches.end(), [&](const auto& t) { return t.trace == trace; }),
                touches.end());
  if (!slot->written) return;
  owner->content = std::move(slot->content);
  slot->next_stamp != 0 ? owner->WasWritten(slot->next_stamp) : owner->WasWritten();
  if (owner->writer == trace.get()) owner->writer = nullptr;
}

// For Note [Calls at once] and Note [Chunks]. `ahead`: it runs on a thread of ours, and is known.
// `waited`: somebody waited for it.
void NoteRun(Trace* trace, const char* reason, bool ahead, bool waited) {
  if (trace->num_calls() == 0 || reason == kUnknownShape) return;
  const Locked lock(DeviceLock());
  const bool is_new = trace->divergence.now != nullptr;
  if (trace->at_once.Ran(trace->num_calls(), !ahead && trace->op_by_op, waited, is_new) && MayRunAtOnce())
    trace->at_once.Start();
  const bool may_run_at_once = MayRunAtOnce();
  if (AreDeterministic(trace->settings()) || (may_run_at_once && trace->at_once.are_new())) return;
  const int64_t num_calls = static_cast<int64_t>(trace->num_calls());
  if (trace->chunks.Ran(trace->num_calls(), !ahead && trace->is_new, is_new) &&
      trace->new_bytes <= Chunks::kSmall * num_calls && may_run_at_once)
    trace->at_once.StartForNew();
}

void Finish(const std::shared_ptr<Trace>& trace, std::string failure = "") {
  std::vector<Trace::Slot> slots;
  std::vector<c10::IValue> numbers;
  const auto tell = absl::MakeCleanup([] { TraceDone().notify_all(); });
  {
    Locked lock(DeviceLock());
    trace->failure = std::move(failure);
    for (const Trace::Heir& heir : trace->heirs) {  // Note [Runs ahead]
      heir.trace->slots[heir.its_slot].content = trace->slots[heir.slot].content;
      heir.trace->failure_before = trace->failure;
    }
    for (Trace::Slot& slot : trace->slots) {
      if (slot.owner != nullptr) GiveBack(trace, &slot);
    }
    if (trace->failure.empty()) NoteEarlyReads(*trace);
    for (const Trace::Heir& heir :
         trace->heirs) {  // the same, be the storage first used before this run's end or after it
      const LazyStorageImpl* const owner = trace->slots[heir.slot].owner;
      heir.trace->slots[heir.its_slot].stamp = owner != nullptr ? owner->stamp() : 0;
    }
    trace->state = Trace::State::kDone;
    trace->final_slots = trace->slots.size();
    trace->final_numbers = trace->numbers.size();
    slots.swap(trace->slots);
    if (!trace->is_ahead) numbers.swap(trace->numbers);
    if (!trace->failure.empty()) trace->slots.resize(slots.size());  // some storages stay
  }
}

// True if no such cut is expected again: fragments of a thread's first steps, which one thread learns shapes in, and
// eight that start together learn in each its own way. Where sizes are new at every step, fragments come again.
bool IsOnce(const Trace& trace, const char* reason) {
  constexpr int kFirstSteps = 8;
  if (reason == kUnknownShape) return true;
  const bool deterministic = trace.num_calls() != 0 && AreDeterministic(trace.settings());
  return trace.fragment && trace.age < kFirstSteps && CompilationFor(deterministic) != base::CompileMode::kSync;
}

// `goes_on`: nobody waits for the trace.
void Run(Trace* trace, Entry* entry, const Parts& parts, bool once, bool goes_on) {
  if (std::exchange(trace->after, nullptr) != nullptr) RunThread::Get().Wait();
  TORCH_CHECK(trace->failure_before.empty(), trace->failure_before);
  for (const Trace::Slot& slot : trace->slots) TakeFromOtherThread(slot.content);
  if (entry != nullptr) {
    entry->Run(trace, once);
    if (goes_on) MarkEndOfPart(trace);
  } else {
    RunParts(trace, parts);
  }
}

// What a cut runs in: without Python's lock, and without modes of the program (of Python's dispatch, of function
// transforms), which saw the calls when they were recorded.
struct OutsideProgram {
  const ReleaseGil release;
  const c10::impl::ForceDispatchKeyGuard no_modes{c10::impl::LocalDispatchKeySet(c10::impl::PODLocalDispatchKeySet{})};
};

// Of a trace that is ahead.
void RunAndFinish(const std::shared_ptr<Trace>& trace, Entry* entry, const Stream& stream) {
  try {
    const OnThreadAhead on(*trace, stream);
    Run(trace.get(), entry, {}, /*once=*/false, /*goes_on=*/true);
  } catch (...) {
    Finish(trace, TextOfError());
    throw;
  }
  Finish(trace);
}

bool RunWhereGiven(const std::shared_ptr<Trace>& trace, Entry* entry, const Stream& stream, RunThread::Where where) {
  if (where == RunThread::Where::kHere) {
    if (entry->WouldRunCalls(trace.get())) return false;
    RunAndFinish(trace, entry, stream);
    return true;
  }
  base::Count(base::Counter::kTracesTakenBack);
  const OutsideProgram outside;
  const UseSettings settings(trace->settings());
  RunAndFinish(trace, entry, stream);
  StayInProgram();
  return true;
}

Parts PartsFor(const Trace& trace, const char* reason, bool host_waits) {
  const size_t n = trace.path.size();
  if (reason == kUnknownShape || trace.ends_chunk || (n > 0 && trace.period == 0 && IsEarlyPart(trace)))
    return {{0, n}};
  Parts parts{PartsOf(trace)};
  parts.begin_early = BeginsEarly(trace, host_waits);
  if (parts.begin_early) {
    parts.cuts = EarlyCuts(trace, std::move(parts.cuts));
  } else if (host_waits && n > 0 && trace.period == 0) {
    std::vector<size_t> cuts = CutsAroundSizes(trace);
    parts.have_sizes = cuts.size() > 2;
    if (parts.have_sizes) parts.cuts = std::move(cuts);
  }
  return parts;
}

enum class Then { kHostWaits, kWait, kGoOn };

void Cut(const std::shared_ptr<Trace>& trace, const char* reason, Then then) {
  const OutsideProgram outside;
  Entry* entry = nullptr;
  Parts parts;
  {
    std::unique_lock<TraceLock> lock(DeviceLock());
    if (trace->RunsAhead()) {
      lock.unlock();
      if (then != Then::kGoOn) RunThread::Get().Wait();
      return;
    }
    if (trace->state == Trace::State::kRunning) {
      TraceDone().wait(lock, [&] { return trace->state == Trace::State::kDone; });
    }
    if (trace->state == Trace::State::kDone) return;
    trace->state = Trace::State::kRunning;
    trace->age += reason != kUnknownShape;
    trace->is_waited = then != Then::kGoOn;
    trace->at_once.WasCut(trace->num_calls(), /*handed_over=*/trace != NewestTrace());
    parts = PartsFor(*trace, reason, then == Then::kHostWaits);
    const bool ends_step = trace->ends_step && !trace->ends_chunk;
    trace->follows_wait = then == Then::kHostWaits || (trace->follows_wait && !ends_step);
    if (parts.cuts.size() == 2) entry = EntryFor(*trace, LiveSlots(*trace));
    if (then == Then::kGoOn && entry != nullptr)
      trace->pure_steps_next = PureStepsAfter(*trace, entry->shares_launches());
  }
  base::Count(base::Tally::kCuts, reason);
  trace->cut = NoteCut(trace->num_calls() != 0 ? trace->path.back() : nullptr, reason);
  LAZY_LOG(1, "cut: ", reason, ", ", trace->num_calls(), " calls");
  const bool once = IsOnce(*trace, reason);
  bool ahead = false;
  try {
    ahead = entry != nullptr && !once && MayRunAhead(*trace, *entry, then != Then::kGoOn) &&
            RunAhead(trace, [entry](const std::shared_ptr<Trace>& given, const Stream& stream, RunThread::Where where) {
              return RunWhereGiven(given, entry, stream, where);
            });
    if (!ahead) {
      WaitForMoves();
      const UseSettings settings(trace->num_calls() != 0 ? trace->settings() : CurrentSettings());
      const OnEagerDevice on;
      Run(trace.get(), entry, parts, once, then == Then::kGoOn);
    }
  } catch (...) {
    Finish(trace, TextOfError());
    throw;
  }
  NoteRun(trace.get(), reason, ahead, then != Then::kGoOn);
  if (!ahead) {
    Finish(trace);
    if (trace->op_by_op && trace != NewestTrace()) DropTeam();  // made for calls of another thread
  } else if (then !=
             Then::kGoOn) {  // this thread's own team would keep a processor busy for milliseconds after its work
    RunThread::Get().Wait();
  }
}

}  // namespace

void CutAndRun(const std::shared_ptr<Trace>& trace, const char* reason) { Cut(trace, reason, Then::kWait); }

void CutAndGoOn(const std::shared_ptr<Trace>& trace, const char* reason) { Cut(trace, reason, Then::kGoOn); }

void CutThreadTraceForHost(const char* reason) {
  if (const std::shared_ptr<Trace> trace = TraceToWaitFor()) Cut(trace, reason, Then::kHostWaits);
}

void CutThreadTrace(const char* reason) {
  if (const std::shared_ptr<Trace> trace = NewestTrace(); trace != nullptr && trace->num_calls() != 0)
    CutAndRun(trace, reason);
}

void CutThreadTraceAndGoOn(const char* reason) {
  if (const std::shared_ptr<Trace> trace = NewestTrace(); trace != nullptr && trace->num_calls() != 0)
    CutAndGoOn(trace, reason);
}

}  // namespace torch_lazy::lazy
