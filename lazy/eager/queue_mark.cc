// SPDX-License-Identifier: Apache-2.0
#include "lazy/eager/queue_mark.h"

#include <map>
#include <mutex>

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "lazy/eager/eager_device.h"
#include "lazy/eager/geometry.h"

namespace torch_lazy::lazy {
namespace {

// Of the current device: one that waits for marks, and for nothing else. The GPU does its few bytes first.
c10::Stream ReadingStream() {
  static auto* const lock = new std::mutex;
  static auto* const all = new std::map<c10::DeviceIndex, c10::Stream>;
  const c10::Device device = EagerDevice();
  const std::lock_guard<std::mutex> held(*lock);
  const auto found = all->find(device.index());
  if (found != all->end()) return found->second;
  const c10::Stream stream =
      c10::impl::getDeviceGuardImpl(c10::kCUDA)->getStreamFromGlobalPool(device, /*isHighPriority=*/true);
  return all->emplace(device.index(), stream).first->second;
}

}  // namespace

QueueMark::QueueMark() {
  const std::optional<c10::Stream> stream = CurrentStream();
  if (!stream) return;
  event_.emplace(c10::kCUDA);
  event_->record(*stream);
}

void QueueMark::Wait() const {
  if (event_) event_->synchronize();
}

c10::Storage QueueMark::Read(const c10::Storage& content) const {
  const at::Tensor bytes = Alias(content, at::kByte, {static_cast<int64_t>(content.nbytes())}, {1}, 0);
  if (!event_) return bytes.clone().storage();
  const c10::Stream stream = ReadingStream();
  event_->block(stream);
  const OnStream on(stream);
  return bytes.cpu().storage();
}

}  // namespace torch_lazy::lazy
