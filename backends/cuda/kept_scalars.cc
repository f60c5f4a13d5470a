// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kept_scalars.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace torch_lazy::backends {
namespace {

constexpr size_t kMost = 64;  // numbers of a launch

// Bit by bit: integers are among them, and NaN.
bool AreEqual(absl::Span<const double> x, absl::Span<const double> y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
}

}  // namespace

absl::StatusOr<uint64_t> KeptScalars::Find(const void* kernel, absl::Span<const double> scalars) {
  const auto found = kept_.find(kernel);
  if (found == kept_.end()) return uint64_t{0};
  Kept& kept = found->second;
  if (kept.device == 0 || !AreEqual(kept.scalars, scalars)) return uint64_t{0};
  if (kept.copied != nullptr) {
    const cuda::Result result = driver_.EventQuery(kept.copied);
    if (result == cuda::kNotReady) return uint64_t{0};
    LAZY_RETURN_IF_ERROR(StatusOf(driver_, result, "cuEventQuery of numbers that stay"));
    LAZY_RETURN_IF_CUDA_ERROR(driver_, EventDestroy(std::exchange(kept.copied, nullptr)), "cuEventDestroy");
  }
  return kept.device;
}

absl::Status KeptScalars::Note(const void* kernel, absl::Span<const double> uploaded, cuda::Stream stream) {
  if (uploaded.empty() || uploaded.size() > kMost) return absl::OkStatus();
  Kept& kept = kept_[kernel];
  if (kept.device != 0) return absl::OkStatus();
  if (!AreEqual(kept.scalars, uploaded)) {
    kept.scalars.assign(uploaded.begin(), uploaded.end());
    return absl::OkStatus();
  }
  const size_t size_bytes = uploaded.size() * sizeof(double);
  const absl::StatusOr<void*> memory = host_.allocate(size_bytes);
  if (absl::IsResourceExhausted(memory.status())) return absl::OkStatus();
  LAZY_RETURN_IF_ERROR(memory.status());
  const auto device = reinterpret_cast<uint64_t>(*memory);
  cuda::Event copied = nullptr;
  const absl::Status status = Copy(uploaded, stream, device, &copied);
  if (!status.ok()) {
    if (copied != nullptr) driver_.EventDestroy(copied);
    host_.free(*memory, size_bytes);  // in the stream's order: a copy under way comes first
    return status;
  }
  kept.device = device;
  kept.copied = copied;
  return absl::OkStatus();
}

absl::Status KeptScalars::Copy(absl::Span<const double> scalars, cuda::Stream stream, uint64_t device,
                               cuda::Event* copied) const {
  const size_t size_bytes = scalars.size() * sizeof(double);
  LAZY_RETURN_IF_CUDA_ERROR(driver_, EventCreate(copied, cuda::kEventDisableTiming), "cuEventCreate");
  LAZY_RETURN_IF_CUDA_ERROR(driver_, MemcpyHtoDAsync(device, scalars.data(), size_bytes, stream),
                            "cuMemcpyHtoDAsync of ", size_bytes, " bytes of numbers that stay");
  LAZY_RETURN_IF_CUDA_ERROR(driver_, EventRecord(*copied, stream), "cuEventRecord");
  return absl::OkStatus();
}

}  // namespace torch_lazy::backends
