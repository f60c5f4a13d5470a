// SPDX-License-Identifier: Apache-2.0
// The machines this library knows.
#pragma once

#include "absl/status/statusor.h"
#include "backends/backend.h"
#include "backends/cuda/cuda_host.h"

namespace torch_lazy::backends {

// Who knows PyTorch says, before Get() is first called, how CUDA is found. `find` is asked when a
// backend is chosen; null means that there is no CUDA.
void SetCudaFinder(const CudaHost* (*find)());

// The backend that option `backend` names, chosen once and leaked on purpose. An error if it cannot
// be had.
const absl::StatusOr<Backend*>& TryGet();

// The same, where an error ends the program.
Backend& Get();

}  // namespace torch_lazy::backends
