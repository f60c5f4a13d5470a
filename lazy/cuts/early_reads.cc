// SPDX-License-Identifier: Apache-2.0
#include "lazy/cuts/early_reads.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "lazy/cuts/early_cuts.h"
#include "lazy/cuts/run_ahead.h"
#include "lazy/eager/current_device.h"
#include "lazy/eager/eager_device.h"
#include "lazy/eager/geometry.h"
#include "lazy/eager/queue_mark.h"
#include "lazy/trace/replay_recorder.h"
#include "lazy/trace/storage.h"

namespace torch_lazy::lazy {
namespace {

constexpr size_t kMostEarlyBytes = 64;  // of a storage: a loss, a number of correct answers
constexpr size_t kMostEnds = 32;        // of parts: three steps

struct Part {
  std::shared_ptr<const QueueMark> end;
  struct Value {
    uint64_t stamp;
    const void* address;
  };
  std::vector<Value> values;
};

// The newest first. The device lock guards them.
std::deque<Part>& NewestParts() {
  static auto* const parts = new std::deque<Part>;
  return *parts;
}

// Null if no part that is known has made the content.
std::shared_ptr<const QueueMark> MarkBehind(uint64_t stamp, const void* address) {
  for (const Part& part : NewestParts()) {
    const auto value = std::ranges::find(part.values, stamp, &Part::Value::stamp);
    if (value != part.values.end()) return value->address == address ? part.end : nullptr;
  }
  return nullptr;
}

}  // namespace

void MarkEndOfPart(Trace* trace) {
  if (trace->num_calls() == 0 || !HasDeviceQueue()) return;
  {
    const Locked lock(DeviceLock());
    if (!IsEarlyPart(*trace)) return;
  }
  trace->end = std::make_shared<QueueMark>();
}

void NoteEarlyReads(const Trace& trace) {
  if (trace.end == nullptr) return;
  Part part{trace.end, {}};
  for (const Trace::Slot& slot : trace.slots) {
    const LazyStorageImpl* const owner = slot.owner;
    if (owner == nullptr || !slot.written || !owner->content || owner->nbytes() > kMostEarlyBytes) continue;
    if (owner->stamp() != 0) part.values.push_back({owner->stamp(), owner->content.data()});
  }
  if (part.values.empty()) return;
  if (NewestParts().size() == kMostEnds) NewestParts().pop_back();
  NewestParts().push_front(std::move(part));
}

c10::Storage ReadEarly(uint64_t stamp, const c10::Storage& content) {
  if (stamp == 0 || content.nbytes() > kMostEarlyBytes) return {};
  std::shared_ptr<const QueueMark> mark;
  {
    const Locked lock(DeviceLock());
    mark = MarkBehind(stamp, content.data());
  }
  if (mark == nullptr) return {};
  base::Count(base::Counter::kEarlyReads);
  return mark->Read(content);
}

at::Tensor ReadEarly(const at::Tensor& tensor) {
  LazyStorageImpl* const storage = LazyStorageImpl::Of(tensor);
  if (storage == nullptr || storage->nbytes() > kMostEarlyBytes || !HasDeviceQueue() ||
      CurrentReplayRecorder() != nullptr)
    return {};
  const OnDevice on(storage->device().index());
  WaitForMoves();
  c10::Storage content;
  uint64_t stamp = 0;
  {
    const Locked lock(DeviceLock());
    if (storage->writer != nullptr || storage->IsSwapped() || !storage->content) return {};
    content = storage->content;
    stamp = storage->stamp();
  }
  const c10::Storage read = ReadEarly(stamp, content);
  return read ? HostTensor(read, GeometryOf(tensor)) : at::Tensor();
}

}  // namespace torch_lazy::lazy
