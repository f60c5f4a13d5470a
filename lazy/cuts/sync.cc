// SPDX-License-Identifier: Apache-2.0
#include "lazy/cuts/sync.h"

#include <optional>
#include <utility>

#include <c10/core/impl/LocalDispatchKeySet.h>

#include "absl/strings/str_cat.h"
#include "base/metrics.h"
#include "lazy/calls/append_call.h"
#include "lazy/cuda/graph_result.h"
#include "lazy/cuts/cut.h"
#include "lazy/cuts/early_reads.h"
#include "lazy/cuts/known_value.h"
#include "lazy/cuts/run_ahead.h"
#include "lazy/eager/current_device.h"
#include "lazy/eager/eager_device.h"
#include "lazy/eager/geometry.h"
#include "lazy/eager/lanes.h"
#include "lazy/eager/on_host.h"
#include "lazy/host/run_thread.h"
#include "lazy/run/run_on_aliases.h"
#include "lazy/trace/replay_recorder.h"
#include "lazy/trace/thread_trace.h"
#include "lazy/trace/trace.h"
#include "lazy/trace/unwritten.h"

namespace torch_lazy::lazy {
namespace {

// Most are for the reason of the one before.
void CountSync(const char* reason) {
  thread_local const char* last = nullptr;
  thread_local std::atomic<int64_t>* cell = nullptr;
  if (std::exchange(last, reason) != reason) cell = &base::Cell(base::Tally::kSyncs, reason);
  cell->fetch_add(1, std::memory_order_relaxed);
}

// A fill of a storage that nobody had filled, which is all that its trace does with it.
struct Fill {
  const TrieNode* call = nullptr;
  torch::jit::Stack arguments;
  int32_t slot = -1;
};

// The one of another thread's pending trace; nothing if it does more. The device lock is held.
std::optional<Fill> FillOf(const LazyStorageImpl& storage, const Trace& trace) {
  constexpr size_t kNewest = 64;  // calls among which it is looked for
  Fill fill;
  fill.slot = SlotOf(storage, &trace);
  const bool is_for_replay = trace.replays || trace.recorder != nullptr;
  if (trace.state != Trace::State::kPending || is_for_replay || storage.touches.size() != 1 || fill.slot < 0 ||
      storage.content || storage.IsSwapped())
    return std::nullopt;
  const TraceSlot& slot = trace.slots[static_cast<size_t>(fill.slot)];
  const bool had_nothing = slot.external && !slot.content && !slot.inherits;  // and no call of the trace has made it
  if (!had_nothing || slot.first_call + kNewest < trace.num_calls()) return std::nullopt;
  for (size_t k = slot.first_call; k < trace.num_calls(); ++k) {
    for (const NodeOperand& operand : trace.path[k]->operands) {
      if (operand.slot != fill.slot) continue;
      if (fill.call != nullptr) return std::nullopt;
      fill.call = trace.path[k];
    }
  }
  if (fill.call == nullptr || !fill.call->op->writes_exactly || fill.call->operands.size() != 1) return std::nullopt;
  for (size_t arg = 0; arg < fill.call->op->args.size(); ++arg)
    fill.arguments.push_back(trace.Argument(*fill.call, arg));
  return fill;
}

// Takes a storage that has only been filled out of another thread's trace, which goes on as if the storage had died:
// what else is pending there need not run. False if it cannot; true if it did, or another thread has come between.
bool TakeFilled(LazyStorageImpl* storage, const std::shared_ptr<Trace>& trace) {
  std::optional<Fill> fill;
  {
    const Locked lock(DeviceLock());
    if (SlotOf(*storage, trace.get()) < 0) return true;
    fill = FillOf(*storage, *trace);
  }
  if (!fill) return false;
  // Modes of the program saw the fill when it was recorded.
  const c10::impl::ForceDispatchKeyGuard no_modes{c10::impl::LocalDispatchKeySet(c10::impl::PODLocalDispatchKeySet{})};
  c10::Storage content = UnwrittenContent(storage->nbytes(), storage->unwritten);
  const NodeOperand& filled = fill->call->operands[0];
  fill->arguments[static_cast<size_t>(filled.arg)] = Alias(content, filled.geometry);
  RunOnAliases(*fill->call->op, &fill->arguments);
  const Locked lock(DeviceLock());
  const std::optional<Fill> now = FillOf(*storage, *trace);
  if (!now || now->call != fill->call) return true;
  trace->ForgetOwner(now->slot);
  storage->touches.clear();
  storage->writer = nullptr;
  storage->content = std::move(content);
  storage->WasWritten();
  return true;
}

// Sync(), but for lanes: a content that was there before may be one's. `is_new` is set if it was made here.
c10::Storage ContentAfterSync(LazyStorageImpl* storage, const char* reason, bool writes, bool* is_new) {
  if (CurrentReplayRecorder() != nullptr) BreakReplay(absl::StrCat("it does at once: ", reason));
  const OnDevice on(storage->device().index());
  if (storage->IsSwapped()) storage->TakeSwapped();
  WaitForMoves();
  c10::Storage made;  // for what nobody has written, without the lock
  while (true) {
    std::shared_ptr<Trace> trace;
    c10::Storage content;
    {
      Locked lock(DeviceLock());
      for (const LazyStorageImpl::Touch& touch : storage->touches) {
        if (touch.trace.get() == storage->writer || (writes && storage->writer == nullptr)) trace = touch.trace;
      }
      if (trace != nullptr) CheckNotFailed(*trace);
      if (trace == nullptr) {
        if (!storage->content && made && made.nbytes() == storage->nbytes()) {
          storage->content = std::move(made);
          *is_new = true;
        }
        if (storage->content) {
          if (writes) storage->WasWritten();
          content = storage->content;
        }
      }
    }
    if (content) {
      TakeFromOtherThread(content);
      return content;
    }
    if (trace != nullptr) {
      if (trace == NewestTrace() || !TakeFilled(storage, trace)) CutAndRun(trace, reason);
    } else {
      made = UnwrittenContent(storage->nbytes(), storage->unwritten);
    }
  }
}

// Of memory that others made for this device (from_blob, DLPack): already there.
at::Tensor AliasOfForeign(const at::Tensor& tensor) {
  const OnDevice on(tensor.device().index());
  TORCH_CHECK(tensor.is_privateuseone() && tensor.has_storage(), "lazy: a tensor without memory on device lazy");
  c10::StorageImpl* foreign = tensor.storage().unsafeGetStorageImpl();
  c10::Storage content(c10::Storage::use_byte_size_t(), foreign->nbytes(),
                       c10::DataPtr(foreign->mutable_data(), EagerDevice()), nullptr, /*resizable=*/false);
  return Alias(content, GeometryOf(tensor));
}

}  // namespace

c10::Storage Sync(LazyStorageImpl* storage, const char* reason, bool writes) {
  bool is_new = false;
  c10::Storage content = ContentAfterSync(storage, reason, writes, &is_new);
  if (is_new) return content;  // no lane has it
  const OnDevice on(storage->device().index());
  JoinLanes();
  return content;
}

at::Tensor SyncToAlias(const at::Tensor& tensor, const char* reason, bool writes) {
  LazyStorageImpl* const storage = LazyStorageImpl::Of(tensor);
  return storage != nullptr ? Alias(Sync(storage, reason, writes), GeometryOf(tensor)) : AliasOfForeign(tensor);
}

at::Tensor SyncForHost(const at::Tensor& tensor, const char* reason) {
  CountSync(reason);
  CutThreadTraceForHost(reason);
  return SyncToAlias(tensor, reason);
}

at::Tensor SyncToRead(const at::Tensor& tensor, const char* reason) {
  if (at::Tensor known = KnownValue(tensor); known.defined()) return known;
  CountSync(reason);
  const at::Tensor early = EarlyValue(tensor);
  CutThreadTraceForHost(reason);
  if (early.defined()) return early;
  if (at::Tensor read = ReadEarly(tensor); read.defined()) return read;
  LazyStorageImpl* const storage = LazyStorageImpl::Of(tensor);
  if (storage != nullptr && IsOnHost() && CurrentReplayRecorder() == nullptr) {
    WaitForMoves();
    const Locked lock(DeviceLock());
    if (const at::Tensor& eager = storage->EagerOn(tensor); eager.defined()) return eager;
  }
  if (storage == nullptr) return AliasOfForeign(tensor);
  bool is_new = false;
  return Alias(ContentAfterSync(storage, reason, /*writes=*/false, &is_new), GeometryOf(tensor));
}

void SyncAll(const char* reason) {
  for (const std::shared_ptr<Trace>& trace : TracesOfAllThreads()) CutAndRun(trace, reason);
  JoinLanes();
}

}  // namespace torch_lazy::lazy
