// SPDX-License-Identifier: Apache-2.0
// What the CUDA backend needs of PyTorch, which it does not know.
#pragma once

#include <cstddef>

namespace torch_lazy::backends {

struct CudaHost {
  int device;                           // index
  void* (*allocate)(size_t size_bytes);  // from PyTorch's caching allocator; throws without memory
  void (*free)(void* memory, size_t size_bytes);
  void* (*stream)();  // CUstream: the calling thread's current one
};

}  // namespace torch_lazy::backends
