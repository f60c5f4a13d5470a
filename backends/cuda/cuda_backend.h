// SPDX-License-Identifier: Apache-2.0
// CUDA devices, of one kind, as a backend.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "backends/backend.h"
#include "backends/blocks/block_launches.h"
#include "backends/cuda/cubin_table.h"
#include "backends/cuda/cuda_host.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/kept_scalars.h"
#include "backends/cuda/upload_ring.h"

namespace torch_lazy::backends {

class CudaBackend final : public Backend {
 public:
  // `host` stays. An error says what is missing. Lives as long as the process.
  static absl::StatusOr<CudaBackend*> Make(const CudaHost& host);
  // With a driver that stays, too: a test's may answer what it likes.
  static absl::StatusOr<CudaBackend*> Make(const cuda::Driver& driver, const CudaHost& host);

  codegen::Target target() const override { return codegen::Target::kCuda; }
  bool on_host() const override { return false; }
  Multiprocessors multiprocessors() const override { return multiprocessors_; }
  std::shared_ptr<Module> Compile(absl::Span<const codegen::Kernel> kernels, bool wait) override {
    return kernels_.Compile(kernels, wait);
  }
  absl::Status Open(int device) override;
  absl::Status Enter() override;
  // On the current device's current stream; returns when the work has been sent.
  absl::Status Launch(absl::Span<const BoundInstance> instances) override;
  absl::StatusOr<std::unique_ptr<LaunchRecord>> BeginRecord(size_t size_bytes) override;
  void EndRecord() override;
  size_t LaunchBytes(absl::Span<const BoundInstance> instances) const override;
  // Of PyTorch's allocator: memory belongs to the current stream.
  void* Allocate(size_t size_bytes) override;
  void Free(void* memory, size_t size_bytes) override;
  void Keep(absl::string_view key, absl::string_view word) override { kernels_.Keep(key, word); }
  std::string Recall(absl::string_view key) override { return kernels_.Recall(key); }
  bool HasKernels(absl::Span<const std::string> names) override { return kernels_.HasKernels(names); }
  void LeaveBehind(absl::Span<const LeftGraph> graphs) override { kernels_.LeaveBehind(graphs); }

 private:
  friend class CudaRecord;
  // What each device has of its own.
  struct OfDevice {
    OfDevice(const cuda::Driver& driver, const CudaHost& host, cuda::Context of_device)
        : context(of_device), ring(driver, host), kept(driver, host) {}

    const cuda::Context context;  // the one PyTorch uses too
    absl::Mutex mutex;            // over the rest
    UploadRing ring;
    KeptScalars kept;
    std::vector<int64_t> arguments;  // of launches for which nothing is uploaded
  };
  static constexpr size_t kMostDevices = 64;

  CudaBackend(const cuda::Driver& driver, const CudaHost& host, std::string arch, Multiprocessors multiprocessors,
              bool can_overlap);
  OfDevice& ThisDevice() { return *devices_[host_.device()].load(std::memory_order_acquire); }
  absl::Status Load(const std::string& cubin, absl::Span<BlockKernel* const> kernels) const;
  // The launches' image, written, and on the device what that reads of it. The device's mutex is
  // held.
  absl::StatusOr<UploadRing::Place> Write(const BlockLaunches& launches, OfDevice* device, cuda::Stream stream) const;
  // `follows_launch`: so did the stream's former work come about, not from a library.
  absl::Status SendAll(const BlockLaunches& launches, bool follows_launch, const UploadRing::Place& image,
                       cuda::Stream stream) const;
  absl::Status Send(const BlockLaunch& launch, bool follows_launch, const UploadRing::Place& image,
                    cuda::Stream stream) const;

  const cuda::Driver& driver_;
  const CudaHost& host_;
  const std::string arch_;  // of all devices: kernels are compiled once
  const Multiprocessors multiprocessors_;
  const bool can_overlap_;  // kernels that follow each other
  CubinTable kernels_;
  absl::Mutex open_mutex_;
  std::array<std::atomic<OfDevice*>, kMostDevices> devices_{};  // null: not open
  std::atomic<int64_t> live_bytes_{0};
};

}  // namespace torch_lazy::backends
