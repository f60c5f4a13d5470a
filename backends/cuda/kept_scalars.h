// SPDX-License-Identifier: Apache-2.0
// Numbers that a kernel's launches read again and again, uploaded once.
//
// Most numbers of a program are constants, an epsilon or a scale, and a copy before each launch is
// another call of the driver. The numbers that a kernel was given twice in a row stay on the
// device, and are never overwritten: so, once their copy is done, launches on any stream may read
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "backends/cuda/cuda_host.h"
#include "backends/cuda/driver.h"

namespace torch_lazy::backends {

// Not thread-safe; the context is current. Gives nothing back, as kernels stay loaded.
class KeptScalars {
 public:
  KeptScalars(const cuda::Driver& driver, const CudaHost& host) : driver_(driver), host_(host) {}
  KeptScalars(const KeptScalars&) = delete;
  KeptScalars& operator=(const KeptScalars&) = delete;

  // Where on the device these numbers of the kernel's launch are, for any stream; 0: nowhere yet.
  absl::StatusOr<uint64_t> Find(const void* kernel, absl::Span<const double> scalars);
  // They were uploaded for a launch on `stream`, from page-locked memory that stays as long as the
  // stream needs it. After an error there is no copy.
  absl::Status Note(const void* kernel, absl::Span<const double> uploaded, cuda::Stream stream);

 private:
  absl::Status Copy(absl::Span<const double> scalars, cuda::Stream stream, uint64_t device, cuda::Event* copied) const;

  struct Kept {
    std::vector<double> scalars;   // of the newest launch; once there is a copy, those
    uint64_t device = 0;           // 0: no copy
    cuda::Event copied = nullptr;  // null: the copy is done, or there is none
  };

  const cuda::Driver& driver_;
  const CudaHost& host_;
  absl::flat_hash_map<const void*, Kept> kept_;
};

}  // namespace torch_lazy::backends
