// SPDX-License-Identifier: Apache-2.0
// CUDA kernels on the CPU: shows what they compute, where no GPU is.
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "backends/backend.h"
#include "backends/blocks/block_kernel.h"
#include "backends/cpu/kernel_table.h"
#include "backends/cpu/pool.h"
#include "backends/cuda_emulator/block_runner.h"

namespace torch_lazy::backends {

class CudaEmulatorBackend final : public Backend {
 public:
  codegen::Target target() const override { return codegen::Target::kCuda; }
  std::shared_ptr<Module> Compile(absl::Span<const codegen::Kernel> kernels, bool wait) override;
  absl::Status Launch(absl::Span<const BoundInstance> instances) override;
  void* Allocate(size_t size_bytes) override { return pool_.Allocate(size_bytes); }
  void Free(void* memory, size_t size_bytes) override { pool_.Free(memory, size_bytes); }
  void Keep(absl::string_view key, absl::string_view word) override { kernels_.Keep(key, word); }
  std::string Recall(absl::string_view key) override { return kernels_.Recall(key); }
  bool HasKernels(absl::Span<const std::string> names) override;

 private:
  friend class EmulatorModule;
  BlockKernel* KernelOf(const codegen::Kernel& kernel);

  KernelTable kernels_;
  Pool pool_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::unique_ptr<BlockKernel>> known_ ABSL_GUARDED_BY(mutex_);  // by name
  absl::Mutex launch_mutex_;  // kernels' shared memory is static
  BlockRunner runner_ ABSL_GUARDED_BY(launch_mutex_);
};

}  // namespace torch_lazy::backends
