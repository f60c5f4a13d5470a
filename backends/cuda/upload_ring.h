// SPDX-License-Identifier: Apache-2.0
// Small memory for what launches read: on the host and on the device.
//
// A copy that does not wait reads the host's memory later, and kernels the device's. So both are
// rings of parts, and a part is used again when the stream has passed an event behind its last
// reader.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/cuda/cuda_host.h"
#include "backends/cuda/driver.h"

namespace torch_lazy::backends {

// Not thread-safe; the context is current.
class UploadRing {
 public:
  UploadRing(const cuda::Driver& driver, const CudaHost& host) : driver_(driver), host_(host) {}
  UploadRing(const UploadRing&) = delete;
  UploadRing& operator=(const UploadRing&) = delete;
  // The driver may be gone when the process ends, so nothing is given back then.
  ~UploadRing() = default;

  struct Place {
    char* host;  // page-locked
    uint64_t device;
  };
  // For work that the caller sends to `stream` before it asks again. After an error the ring is as
  // it was, and may be asked again.
  absl::StatusOr<Place> Take(size_t size_bytes, cuda::Stream stream);

 private:
  static constexpr size_t kParts = 8;
  struct Part {
    cuda::Event event = nullptr;
    bool in_use = false;  // the event has been recorded, and not waited for
  };

  absl::Status Close();  // the current part
  absl::Status Await(Part* part);
  absl::Status Grow(size_t part_bytes);

  const cuda::Driver& driver_;
  const CudaHost& host_;
  std::array<Part, kParts> parts_;
  size_t part_bytes_ = 0;
  char* host_memory_ = nullptr;
  char* device_memory_ = nullptr;
  size_t current_ = 0;
  size_t used_bytes_ = 0;          // of the current part
  cuda::Stream stream_ = nullptr;  // its readers', if any of it is used
};

}  // namespace torch_lazy::backends
