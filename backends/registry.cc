// SPDX-License-Identifier: Apache-2.0
#include "backends/registry.h"

#include <atomic>

#include "absl/strings/str_cat.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda_emulator/cuda_emulator_backend.h"
#include "backends/null/null_backend.h"
#include "base/check.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/status.h"

namespace torch_lazy::backends {
namespace {

std::atomic<const CudaHost* (*)()>& CudaFinder() {
  static constinit std::atomic<const CudaHost* (*)()> find{nullptr};
  return find;
}

const CudaHost* FindCuda() {
  const CudaHost* (*const find)() = CudaFinder().load();
  return find == nullptr ? nullptr : find();
}

absl::StatusOr<Backend*> MakeCuda() {
  const CudaHost* const host = FindCuda();
  if (host == nullptr)
    return absl::UnavailableError("backend=cuda: PyTorch finds no CUDA device, or is built without CUDA");
  LAZY_ASSIGN_OR_RETURN(Backend * backend, CudaBackend::Make(*host));
  return backend;
}

// Where PyTorch has CUDA and we cannot use it, its tensors are on the CPU as without it.
Backend* MakeAny() {
  if (FindCuda() == nullptr) return new CpuBackend;
  const absl::StatusOr<Backend*> cuda = MakeCuda();
  if (cuda.ok()) return *cuda;
  base::WarnOnce("cuda", absl::StrCat("the CPU is used: ", cuda.status().message()));
  return new CpuBackend;
}

absl::StatusOr<Backend*> Make() {
  switch (base::Backend()) {
    case base::BackendChoice::kAuto:
      return MakeAny();
    case base::BackendChoice::kCpu:
      return new CpuBackend;
    case base::BackendChoice::kCuda:
      return MakeCuda();
    case base::BackendChoice::kNull:
      return new NullBackend(codegen::Target::kCpu);
    case base::BackendChoice::kNullCuda:
      return new NullBackend(codegen::Target::kCuda);
    case base::BackendChoice::kCudaEmulator:
      return new CudaEmulatorBackend;
  }
  return absl::InternalError("backend: no such choice");
}

}  // namespace

void SetCudaFinder(const CudaHost* (*find)()) { CudaFinder().store(find); }

const absl::StatusOr<Backend*>& TryGet() {
  static const auto& backend = *new absl::StatusOr<Backend*>(Make());
  return backend;
}

Backend& Get() {
  static Backend* const backend = [] {
    LAZY_CHECK(TryGet().ok(), TryGet().status().message());
    return *TryGet();
  }();
  return *backend;
}

}  // namespace torch_lazy::backends
