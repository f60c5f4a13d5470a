// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/upload_ring.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace torch_lazy::backends {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kLeastPartBytes = 256 << 10;

}  // namespace

UploadRing::Place UploadRing::Take(size_t size_bytes, cuda::Stream stream) {
  const size_t bytes = (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (bytes > part_bytes_) Grow(std::max(std::bit_ceil(bytes), kLeastPartBytes));
  if (used_bytes_ + bytes > part_bytes_ || (used_bytes_ > 0 && stream != stream_)) {
    Close();
    current_ = (current_ + 1) % kParts;
    Await(&parts_[current_]);
  }
  stream_ = stream;
  const size_t at = current_ * part_bytes_ + used_bytes_;
  used_bytes_ += bytes;
  return {host_memory_ + at, reinterpret_cast<uint64_t>(device_memory_ + at)};
}

void UploadRing::Close() {
  if (used_bytes_ == 0) return;
  Part& part = parts_[current_];
  LAZY_CHECK_CUDA(driver_, EventRecord(part.event, stream_), "cuEventRecord");
  part.in_use = true;
  used_bytes_ = 0;
}

void UploadRing::Await(Part* part) {
  if (!part->in_use) return;
  LAZY_CHECK_CUDA(driver_, EventSynchronize(part->event), "cuEventSynchronize");
  part->in_use = false;
}

void UploadRing::Grow(size_t part_bytes) {
  Close();
  for (Part& part : parts_) {
    Await(&part);
    if (part.event == nullptr)
      LAZY_CHECK_CUDA(driver_, EventCreate(&part.event, cuda::kEventDisableTiming),
                      "cuEventCreate");
  }
  if (part_bytes_ != 0) {
    LAZY_CHECK_CUDA(driver_, MemFreeHost(host_memory_), "cuMemFreeHost");
    host_.free(device_memory_, part_bytes_ * kParts);
  }
  part_bytes_ = part_bytes;
  const size_t total = part_bytes_ * kParts;
  void* memory = nullptr;
  LAZY_CHECK_CUDA(driver_, MemHostAlloc(&memory, total, /*flags=*/0), "cuMemHostAlloc of ", total,
                  " bytes");
  host_memory_ = static_cast<char*>(memory);
  device_memory_ = static_cast<char*>(host_.allocate(total));
  LAZY_CHECK(device_memory_ != nullptr, "no memory for ", total, " bytes of launches' arguments");
}

}  // namespace torch_lazy::backends
