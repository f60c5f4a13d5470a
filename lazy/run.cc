// SPDX-License-Identifier: Apache-2.0
// Cutting traces: what is live becomes an output, the entry runs, storages get their contents.
#include <algorithm>
#include <condition_variable>
#include <utility>

#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "absl/strings/str_cat.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/metrics.h"
#include "lazy/background.h"
#include "lazy/entry.h"
#include "lazy/geometry.h"
#include "lazy/gil.h"
#include "lazy/history.h"
#include "lazy/memory.h"
#include "lazy/noting.h"
#include "lazy/segments.h"
#include "lazy/settings.h"
#include "lazy/storage.h"
#include "lazy/trace.h"

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

std::condition_variable_any& TraceDone() {
  static auto* const done = new std::condition_variable_any;
  return *done;
}

std::vector<std::weak_ptr<Trace>>& AllTraces() {
  static auto* const traces = new std::vector<std::weak_ptr<Trace>>;
  return *traces;
}

std::shared_ptr<Trace>& CurrentTrace() {
  thread_local std::shared_ptr<Trace> trace;
  return trace;
}

// Backward runs on the caller's thread: handing each autograd node to another thread costs more than recording it, and a
// trace belongs to one thread. A user may switch it on again.
void PrepareThread() {
  thread_local const bool prepared = [] {
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
    return true;
  }();
  (void)prepared;
}

// After the thread's last one, whose length its arrays start with.
std::shared_ptr<Trace> NewTrace(const Trace* last) {
  PrepareThread();
  auto trace = std::make_shared<Trace>();
  trace->trie = TrieForNew();
  trace->at = trace->trie->root()->expected;
  if (last != nullptr) trace->age = last->age;
  if (last != nullptr && last->state == Trace::State::kDone) {
    trace->slots.reserve(last->final_slots);
    trace->path.reserve(last->path.size());
    trace->numbers.reserve(last->final_numbers);
  }
  std::vector<std::weak_ptr<Trace>>& all = AllTraces();
  std::erase_if(all, [](const std::weak_ptr<Trace>& t) { return t.expired(); });
  all.push_back(trace);
  return trace;
}

// At a step's end, all that the program might wait for there: whether it does or goes on, the entry is the same.
std::vector<bool> LiveSlots(const Trace& trace) {
  std::vector<bool> live(trace.slots.size());
  const AliveAfter alive_after(trace, trace.path.size());
  for (size_t s = 0; s < live.size(); ++s) {
    const bool alive = trace.ends_step ? alive_after(s) : trace.slots[s].owner != nullptr;
    live[s] = alive && trace.slots[s].written;
  }
  return live;
}

// What is being caught.
std::string TextOfError() {
  try {
    throw;
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "unknown error";
  }
}

// Storages take what the run has left in their slots, and are no longer part of the trace. Not so those that were made by
// calls after one that failed: they have no value.
void Finish(const std::shared_ptr<Trace>& trace, std::string failure = "") {
  std::vector<Trace::Slot> slots;
  std::vector<c10::IValue> numbers;
  {
    Locked lock(DeviceLock());
    trace->failure = std::move(failure);
    for (Trace::Slot& slot : trace->slots) {
      if (slot.owner == nullptr) continue;
      if (!trace->failure.empty() && !slot.external && !slot.content) continue;
      auto& touches = slot.owner->touches;
      touches.erase(std::remove_if(touches.begin(), touches.end(), [&](const auto& t) { return t.trace == trace; }),
                    touches.end());
      if (!slot.written) continue;
      slot.owner->content = std::move(slot.content);
      slot.owner->writer = nullptr;
    }
    trace->state = Trace::State::kDone;
    trace->final_slots = trace->slots.size();
    trace->final_numbers = trace->numbers.size();
    slots.swap(trace->slots);
    numbers.swap(trace->numbers);
    if (!trace->failure.empty()) trace->slots.resize(slots.size());  // some storages stay
  }
  TraceDone().notify_all();
}

// True if no such cut is expected again: fragments of a thread's first steps, which one thread learns shapes in, and eight that
// start together learn in each its own way. Where sizes are new at every step, fragments come again.
bool IsOnce(const Trace& trace, const char* reason) {
  constexpr int kFirstSteps = 8;
  if (reason == kUnknownShape) return true;
  return trace.fragment && trace.age < kFirstSteps && base::Compilation() != base::CompileMode::kSync;
}

}  // namespace

std::shared_ptr<Trace>& ThreadTrace() {
  std::shared_ptr<Trace>& trace = CurrentTrace();
  if (trace == nullptr || trace->state != Trace::State::kPending) trace = NewTrace(trace.get());
  return trace;
}

void CutAndRun(const std::shared_ptr<Trace>& trace, const char* reason) {
  ReleaseGil release;
  // Modes of the program (of Python's dispatch, of function transforms) saw these calls when they were recorded.
  const c10::impl::ForceDispatchKeyGuard no_modes{c10::impl::LocalDispatchKeySet(c10::impl::PODLocalDispatchKeySet{})};
  Entry* entry = nullptr;
  std::vector<size_t> cuts;
  {
    std::unique_lock<std::recursive_mutex> lock(DeviceLock());
    if (trace->state == Trace::State::kRunning) {
      TraceDone().wait(lock, [&] { return trace->state == Trace::State::kDone; });
    }
    if (trace->state == Trace::State::kDone) return;
    trace->state = Trace::State::kRunning;
    trace->age += reason != kUnknownShape;
    cuts = reason == kUnknownShape ? std::vector<size_t>{0, trace->path.size()} : PartsOf(*trace);
    if (cuts.size() == 2) entry = EntryFor(trace->at->node, LiveSlots(*trace));
  }
  base::Count(base::Tally::kCuts, reason);
  trace->cut = NoteCut(trace->num_calls() != 0 ? trace->path.back() : nullptr, reason);
  LAZY_LOG(1, "cut: ", reason, ", ", trace->num_calls(), " calls");
  const bool once = IsOnce(*trace, reason);
  try {
    const UseSettings settings(trace->num_calls() != 0 ? trace->settings() : CurrentSettings());
    if (entry != nullptr) {
      entry->Run(trace.get(), once);
    } else {
      RunParts(trace.get(), cuts);
    }
  } catch (...) {
    Finish(trace, TextOfError());
    throw;
  }
  Finish(trace);
}

void CheckNotFailed(const Trace& trace) {
  TORCH_CHECK(trace.failure.empty(), "lazy: the tensor has no value, since a call before the one that makes it failed: ", trace.failure);
}

void CutThreadTrace(const char* reason) {
  std::shared_ptr<Trace> trace;
  {
    Locked lock(DeviceLock());
    trace = CurrentTrace();
  }
  if (trace != nullptr && trace->num_calls() != 0) CutAndRun(trace, reason);
}

c10::Storage Sync(LazyStorageImpl* storage, const char* reason, bool writes) {
  if (CurrentNoting() != nullptr) BreakNoting(absl::StrCat("it does at once: ", reason));
  while (true) {
    std::shared_ptr<Trace> trace;
    {
      Locked lock(DeviceLock());
      for (const LazyStorageImpl::Touch& touch : storage->touches) {
        if (touch.trace.get() == storage->writer || (writes && storage->writer == nullptr)) trace = touch.trace;
      }
      if (trace != nullptr) CheckNotFailed(*trace);
      if (trace == nullptr) {
        if (!storage->content) storage->content = NewContent(storage->nbytes());
        return storage->content;
      }
    }
    CutAndRun(trace, reason);
  }
}

at::Tensor SyncToCpuAlias(const at::Tensor& tensor, const char* reason, bool writes) {
  LazyStorageImpl* storage = LazyStorageImpl::Of(tensor);
  if (storage != nullptr) return Alias(Sync(storage, reason, writes), GeometryOf(tensor));
  // Memory that others made for this device (from_blob, DLPack): already there.
  TORCH_CHECK(tensor.is_privateuseone() && tensor.has_storage(), "lazy: a tensor without memory on device lazy");
  c10::StorageImpl* foreign = tensor.storage().unsafeGetStorageImpl();
  c10::Storage content(c10::Storage::use_byte_size_t(), foreign->nbytes(),
                       c10::DataPtr(foreign->mutable_data(), c10::Device(c10::kCPU)), nullptr, /*resizable=*/false);
  return Alias(content, GeometryOf(tensor));
}

at::Tensor SyncForHost(const at::Tensor& tensor, const char* reason) {
  base::Count(base::Tally::kSyncs, reason);
  CutThreadTrace(reason);
  return SyncToCpuAlias(tensor, reason);
}

void SyncAll(const char* reason) {
  std::vector<std::shared_ptr<Trace>> traces;
  {
    Locked lock(DeviceLock());
    for (const std::weak_ptr<Trace>& weak : AllTraces()) {
      if (std::shared_ptr<Trace> trace = weak.lock()) traces.push_back(std::move(trace));
    }
  }
  for (const std::shared_ptr<Trace>& trace : traces) CutAndRun(trace, reason);
}

}  // namespace torch_lazy::lazy
