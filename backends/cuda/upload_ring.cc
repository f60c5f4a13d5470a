// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/upload_ring.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace torch_lazy::backends {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kLeastPartBytes = 256 << 10;

}  // namespace

absl::StatusOr<UploadRing::Place> UploadRing::Take(size_t size_bytes, cuda::Stream stream) {
  const size_t bytes = (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (bytes > part_bytes_) LAZY_RETURN_IF_ERROR(Grow(std::max(std::bit_ceil(bytes), kLeastPartBytes)));
  if (used_bytes_ + bytes > part_bytes_ || (used_bytes_ > 0 && stream != stream_)) {
    LAZY_RETURN_IF_ERROR(Close());
    current_ = (current_ + 1) % kParts;
  }
  if (used_bytes_ == 0) LAZY_RETURN_IF_ERROR(Await(&parts_[current_]));
  stream_ = stream;
  const size_t at = current_ * part_bytes_ + used_bytes_;
  used_bytes_ += bytes;
  return Place{host_memory_ + at, reinterpret_cast<uint64_t>(device_memory_ + at)};
}

absl::Status UploadRing::Close() {
  if (used_bytes_ == 0) return absl::OkStatus();
  Part& part = parts_[current_];
  LAZY_RETURN_IF_CUDA_ERROR(driver_, EventRecord(part.event, stream_), "cuEventRecord");
  part.in_use = true;
  used_bytes_ = 0;
  return absl::OkStatus();
}

absl::Status UploadRing::Await(Part* part) {
  if (!part->in_use) return absl::OkStatus();
  LAZY_RETURN_IF_CUDA_ERROR(driver_, EventSynchronize(part->event), "cuEventSynchronize");
  part->in_use = false;
  return absl::OkStatus();
}

absl::Status UploadRing::Grow(size_t part_bytes) {
  LAZY_RETURN_IF_ERROR(Close());
  for (Part& part : parts_) {
    LAZY_RETURN_IF_ERROR(Await(&part));
    if (part.event == nullptr)
      LAZY_RETURN_IF_CUDA_ERROR(driver_, EventCreate(&part.event, cuda::kEventDisableTiming), "cuEventCreate");
  }
  const size_t total = part_bytes * kParts;
  LAZY_ASSIGN_OR_RETURN(void* const device_memory, host_.allocate(total));
  void* memory = nullptr;
  if (const cuda::Result result = driver_.MemHostAlloc(&memory, total, /*flags=*/0); result != 0) {
    host_.free(device_memory, total);
    return StatusOf(driver_, result, absl::StrCat("cuMemHostAlloc of ", total, " bytes"));
  }
  void* const former = std::exchange(host_memory_, static_cast<char*>(memory));
  if (part_bytes_ != 0) host_.free(device_memory_, part_bytes_ * kParts);
  device_memory_ = static_cast<char*>(device_memory);
  part_bytes_ = part_bytes;
  if (former != nullptr) LAZY_RETURN_IF_CUDA_ERROR(driver_, MemFreeHost(former), "cuMemFreeHost");
  return absl::OkStatus();
}

}  // namespace torch_lazy::backends
