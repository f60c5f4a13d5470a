// SPDX-License-Identifier: Apache-2.0
#include "lazy/cuts/sync.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/metrics.h"
#include "lazy/cuts/cut.h"
#include "lazy/cuts/early_reads.h"
#include "lazy/cuts/known_value.h"
#include "lazy/cuts/run_ahead.h"
#include "lazy/eager/current_device.h"
#include "lazy/eager/eager_device.h"
#include "lazy/eager/geometry.h"
#include "lazy/eager/on_host.h"
#include "lazy/host/run_thread.h"
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

}  // namespace

c10::Storage Sync(LazyStorageImpl* storage, const char* reason, bool writes) {
  if (CurrentReplayRecorder() != nullptr) BreakReplay(absl::StrCat("it does at once: ", reason));
  const OnDevice on(storage->device().index());
  if (storage->IsSwapped()) storage->TakeSwapped();
  WaitForMoves();
  c10::Storage made;  // for what nobody has written, without the lock
  while (true) {
    std::shared_ptr<Trace> trace;
    {
      Locked lock(DeviceLock());
      for (const LazyStorageImpl::Touch& touch : storage->touches) {
        if (touch.trace.get() == storage->writer || (writes && storage->writer == nullptr)) trace = touch.trace;
      }
      if (trace != nullptr) CheckNotFailed(*trace);
      if (trace == nullptr) {
        if (!storage->content && made && made.nbytes() == storage->nbytes()) storage->content = std::move(made);
        if (storage->content) {
          if (writes) storage->WasWritten();
          return storage->content;
        }
      }
    }
    if (trace != nullptr) {
      CutAndRun(trace, reason);
    } else {
      made = UnwrittenContent(storage->nbytes(), storage->unwritten);
    }
  }
}

at::Tensor SyncToAlias(const at::Tensor& tensor, const char* reason, bool writes) {
  LazyStorageImpl* storage = LazyStorageImpl::Of(tensor);
  if (storage != nullptr) return Alias(Sync(storage, reason, writes), GeometryOf(tensor));
  const OnDevice on(tensor.device().index());
  // Memory that others made for this device (from_blob, DLPack): already there.
  TORCH_CHECK(tensor.is_privateuseone() && tensor.has_storage(), "lazy: a tensor without memory on device lazy");
  c10::StorageImpl* foreign = tensor.storage().unsafeGetStorageImpl();
  c10::Storage content(c10::Storage::use_byte_size_t(), foreign->nbytes(),
                       c10::DataPtr(foreign->mutable_data(), EagerDevice()), nullptr, /*resizable=*/false);
  return Alias(content, GeometryOf(tensor));
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
  return SyncToAlias(tensor, reason);
}

void SyncAll(const char* reason) {
  for (const std::shared_ptr<Trace>& trace : TracesOfAllThreads()) CutAndRun(trace, reason);
}

}  // namespace torch_lazy::lazy
