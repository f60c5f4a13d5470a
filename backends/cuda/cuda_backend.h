// SPDX-License-Identifier: Apache-2.0
// A CUDA device as a backend.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "backends/backend.h"
#include "backends/blocks/block_launches.h"
#include "backends/cuda/cubin_table.h"
#include "backends/cuda/cuda_host.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/upload_ring.h"

namespace torch_lazy::backends {

class CudaBackend final : public Backend {
 public:
  // `host` stays. An error says what is missing. Lives as long as the process.
  static absl::StatusOr<CudaBackend*> Make(const CudaHost& host);

  codegen::Target target() const override { return codegen::Target::kCuda; }
  bool on_host() const override { return false; }
  Multiprocessors multiprocessors() const override { return multiprocessors_; }
  std::shared_ptr<Module> Compile(absl::Span<const codegen::Kernel> kernels, bool wait) override {
    return kernels_.Compile(kernels, wait);
  }
  // On the calling thread's current stream; returns when the work has been sent.
  void Launch(absl::Span<const BoundInstance> instances) override;
  std::unique_ptr<LaunchRecord> BeginRecord(size_t size_bytes) override;
  void EndRecord() override;
  size_t LaunchBytes(absl::Span<const BoundInstance> instances) const override;
  // Of PyTorch's allocator: memory belongs to the current stream.
  void* Allocate(size_t size_bytes) override;
  void Free(void* memory, size_t size_bytes) override;
  void Keep(absl::string_view key, absl::string_view word) override { kernels_.Keep(key, word); }
  std::string Recall(absl::string_view key) override { return kernels_.Recall(key); }

 private:
  friend class CudaRecord;
  CudaBackend(const cuda::Driver& driver, const CudaHost& host, cuda::Context context,
              std::string arch, Multiprocessors multiprocessors);
  absl::Status Load(const std::string& cubin, absl::Span<BlockKernel* const> kernels) const;
  void Send(const BlockLaunch& launch, const UploadRing::Place& image, cuda::Stream stream) const;

  const cuda::Driver& driver_;
  const CudaHost& host_;
  const cuda::Context context_;
  const Multiprocessors multiprocessors_;
  CubinTable kernels_;
  absl::Mutex launch_mutex_;
  UploadRing ring_ ABSL_GUARDED_BY(launch_mutex_);
  std::vector<int64_t> arguments_
      ABSL_GUARDED_BY(launch_mutex_);  // of a launch for which the device reads nothing
  std::atomic<int64_t> live_bytes_{0};
};

}  // namespace torch_lazy::backends
