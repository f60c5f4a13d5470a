// SPDX-License-Identifier: Apache-2.0
// What the CUDA backend needs of PyTorch, as a table: it knows no header of LibTorch.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"

namespace torch_lazy::backends {

// None of these throws.
struct CudaHost {
  int (*device)();  // the calling thread's current one; from 0
  // PyTorch's caching allocator, on that device's current stream.
  absl::StatusOr<void*> (*allocate)(size_t size_bytes);
  void (*free)(void* memory, size_t size_bytes);
  void* (*stream)();  // CUstream of the current device's current stream
};

}  // namespace torch_lazy::backends
