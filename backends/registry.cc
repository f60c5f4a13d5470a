// SPDX-License-Identifier: Apache-2.0
#include "backends/registry.h"

#include "backends/cpu/cpu_backend.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/null/null_backend.h"
#include "base/check.h"
#include "base/flags.h"

namespace torch_lazy::backends {
namespace {

const CudaHost* (*find_cuda)() = nullptr;

Backend* Make() {
  const base::BackendChoice choice = base::Backend();
  if (choice == base::BackendChoice::kNull) return new NullBackend;
  if (choice == base::BackendChoice::kCpu) return new CpuBackend;
  const CudaHost* cuda = find_cuda == nullptr ? nullptr : find_cuda();
  LAZY_CHECK(cuda != nullptr || choice != base::BackendChoice::kCuda,
             "option backend is cuda, and PyTorch finds no CUDA device");
  return cuda == nullptr ? static_cast<Backend*>(new CpuBackend) : new CudaBackend(*cuda);
}

}  // namespace

void SetCudaFinder(const CudaHost* (*find)()) { find_cuda = find; }

Backend& Get() {
  static Backend* const backend = Make();
  return *backend;
}

}  // namespace torch_lazy::backends
