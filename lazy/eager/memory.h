// SPDX-License-Identifier: Apache-2.0
// Content of storages: memory from the backend's pool, or from PyTorch's allocator for the GPU.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/core/Storage.h>

namespace torch_lazy::lazy {

// An uninitialised storage of the eager device.
c10::Storage NewContent(size_t size_bytes);

// The same as ATen would allocate it on the CPU for a result, in a PooledResults scope.
c10::Storage NewResult(size_t size_bytes);

// True if any thread may drop it: memory from the pool, or from PyTorch's allocator for the CPU.
bool IsPooled(const c10::Storage& content);

// True if it is memory that an allocator gave for it: the pool, or PyTorch's for the eager device.
bool IsAllocated(const c10::Storage& content);

// Puts an allocator before PyTorch's for the CPU, once, at load. It hands everything on to the former one, except in a
// PooledResults scope: ATen makes its results in fresh memory each time, and fresh pages cost more than many a kernel.
void InstallPooledResults();

// While one lives, what its thread allocates for CPU tensors comes from the pool.
class PooledResults {
 public:
  PooledResults();
  ~PooledResults();
  PooledResults(const PooledResults&) = delete;
  PooledResults& operator=(const PooledResults&) = delete;
};

}  // namespace torch_lazy::lazy
