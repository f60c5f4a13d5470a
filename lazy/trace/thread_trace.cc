// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace/thread_trace.h"

#include <ATen/Context.h>
#include <c10/core/AutogradState.h>

#include "base/at_work.h"
#include "base/flags.h"
#include "base/log.h"
#include "lazy/eager/on_host.h"
#include "lazy/host/background.h"
#include "lazy/trace/history.h"
#include "lazy/trace/replay_recorder.h"

namespace torch_lazy::lazy {
namespace {

// The trie for a new trace. The former one is freed in the background, which takes a while.
const std::shared_ptr<Trie>& TrieForNew() {
  std::shared_ptr<Trie>& trie = CurrentTrie();
  if (trie != nullptr && static_cast<int64_t>(trie->num_calls()) >= base::Number(base::Option::kMaxKnownOps)) {
    LAZY_LOG(1, "known traces of ", trie->num_calls(), " calls are forgotten");
    ForgetSites();
    InBackground([former = std::move(trie)] {});
    trie = nullptr;
  }
  if (trie == nullptr) trie = std::make_shared<Trie>();
  return trie;
}

std::vector<std::weak_ptr<Trace>>& AllTraces() {
  static auto* const traces = new std::vector<std::weak_ptr<Trace>>;
  return *traces;
}

// Backward runs on the caller's thread: handing each autograd node to another thread costs more than recording it, and
// a trace belongs to one thread. A user may switch it on again.
void PrepareThread() {
  thread_local const bool prepared = [] {
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
    base::WatchForExit();
    return true;
  }();
  (void)prepared;
}

// After the thread's last one, whose length its arrays start with.
std::shared_ptr<Trace> NewTrace(const Trace* last) {
  PrepareThread();
  auto trace = std::make_shared<Trace>();
  trace->trie = TrieForNew();
  const bool follows = last != nullptr && last->trie == trace->trie && !last->path.empty();
  trace->at = trace->trie->RootAfter(follows ? last->path.back() : nullptr)->expected;
  if (last != nullptr) {
    trace->age = last->age;
    trace->follows_wait = last->follows_wait;
    trace->at_once = last->at_once;
    trace->chunks = last->chunks;
    if (trace->at_once.is_on() || trace->at_once.hands_over()) trace->at = trace->trie->nowhere()->expected;
    trace->pure_steps_wanted = last->pure_steps_next;
    trace->slots.reserve(last->final_slots);
    trace->path.reserve(last->path.size());
    trace->numbers.reserve(last->final_numbers);
  }
  std::vector<std::weak_ptr<Trace>>& all = AllTraces();
  std::erase_if(all, [](const std::weak_ptr<Trace>& t) { return t.expired(); });
  all.push_back(trace);
  return trace;
}

// What has come to pass where calls run at once. It may end that, and then a trace begins.
void Tell(Trace* trace, void (AtOnce::*what)()) {
  if (!trace->at_once.is_on()) return;
  (trace->at_once.*what)();
  if (!trace->at_once.is_on()) trace->at = trace->trie->root()->expected;
}

// Whether nobody asks for the record of each call.
bool MayGoUnrecorded() {
  return CurrentReplayRecorder() == nullptr && base::Number(base::Option::kCompare) == 0 &&
         (base::Number(base::Option::kDisable) == 0 || !base::IsDisabled("at_once"));
}

// Whether calls of the trace's thread do: Note [Calls at once].
bool AllRunAtOnce(Trace* trace) {
  if (trace->at_once.is_on() && !MayRunAtOnce()) Tell(trace, &AtOnce::Stop);
  return trace->at_once.is_on();
}

}  // namespace

std::shared_ptr<Trace>& ThreadTrace() {
  std::shared_ptr<Trace>& trace = NewestOfThread();
  if (trace == nullptr || trace->state != Trace::State::kPending) trace = NewTrace(trace.get());
  return trace;
}

const std::shared_ptr<Trace>& RecordingTrace() {
  const std::shared_ptr<Trace>& trace = ThreadTrace();
  Tell(trace.get(), &AtOnce::Stop);
  if (trace->at->node == trace->trie->nowhere()) trace->at = trace->trie->root()->expected;
  return trace;
}

bool MayRunAtOnce() {
  return IsOnHost() && MayGoUnrecorded() && !at::globalContext().deterministicAlgorithms() &&
         base::Compilation() != base::CompileMode::kSync;
}

bool RunsAtOnce(const Op& op, Trace* trace) {
  if (trace->at_once.is_on()) return AllRunAtOnce(trace);
  return op.writes_exactly && trace->at_once.hands_over() && trace->num_calls() == 0 && MayGoUnrecorded();
}

bool CallsRunAtOnce() {
  {
    const RecordingLock lock(/*alone=*/false);
    const Trace* const trace = NewestOfThread().get();
    if (trace != nullptr && trace->state == Trace::State::kPending && !trace->at_once.is_on()) return false;
  }
  const Locked lock(DeviceLock());
  return AllRunAtOnce(ThreadTrace().get());
}

void TellAtOnce(const Op& op, Trace* trace) {
  Tell(trace, &AtOnce::Call);
  if (op.immediate || op.dynamic_by_mask) Tell(trace, &AtOnce::Wait);
}

std::shared_ptr<Trace> TraceToWaitFor() {
  const RecordingLock lock(/*alone=*/false);
  const std::shared_ptr<Trace>& trace = NewestOfThread();
  if (trace == nullptr) return nullptr;
  Tell(trace.get(), &AtOnce::Wait);
  if (trace->num_calls() == 0 || trace->state == Trace::State::kDone) trace->follows_wait = true;
  return trace->num_calls() != 0 ? trace : nullptr;
}

std::shared_ptr<Trace> NewestTrace() { return NewestOfThread(); }

std::vector<std::shared_ptr<Trace>> TracesOfAllThreads() {
  std::vector<std::shared_ptr<Trace>> traces;
  Locked lock(DeviceLock());
  for (const std::weak_ptr<Trace>& weak : AllTraces()) {
    if (std::shared_ptr<Trace> trace = weak.lock()) traces.push_back(std::move(trace));
  }
  return traces;
}

}  // namespace torch_lazy::lazy
