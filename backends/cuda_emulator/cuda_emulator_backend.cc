// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda_emulator/cuda_emulator_backend.h"

#include <utility>
#include <vector>

#include "backends/blocks/block_launches.h"
#include "backends/cuda_emulator/wrap.h"
#include "base/metrics.h"

namespace torch_lazy::backends {

// The module of the wrapped kernels, whose functions are the entries of ours.
class EmulatorModule final : public Module {
 public:
  EmulatorModule(CudaEmulatorBackend* backend, std::shared_ptr<Module> wrapped, std::vector<BlockKernel*> kernels)
      : backend_(backend), wrapped_(std::move(wrapped)), kernels_(std::move(kernels)) {}
  bool ready() const override { return wrapped_->ready(); }
  absl::Status status() const override { return wrapped_->status(); }
  absl::Status StatusOf(int kernel) const override { return wrapped_->StatusOf(kernel); }
  void Wait() override { wrapped_->Wait(); }
  void* Function(int kernel) const override {
    absl::MutexLock lock(&backend_->mutex_);
    BlockKernel* const found = kernels_[kernel];  // which another thread may launch already
    if (found->one == nullptr) found->one = found->many = wrapped_->Function(kernel);
    return found;
  }

 private:
  CudaEmulatorBackend* const backend_;
  const std::shared_ptr<Module> wrapped_;
  const std::vector<BlockKernel*> kernels_;
};

BlockKernel* CudaEmulatorBackend::KernelOf(const codegen::Kernel& kernel) {
  absl::MutexLock lock(&mutex_);
  std::unique_ptr<BlockKernel>& known = known_[kernel.name];
  if (known == nullptr) known = std::make_unique<BlockKernel>(BlockKernelOf(kernel));
  return known.get();
}

std::shared_ptr<Module> CudaEmulatorBackend::Compile(absl::Span<const codegen::Kernel> kernels, bool wait) {
  std::vector<codegen::Kernel> wrapped;
  std::vector<BlockKernel*> ours;
  for (const codegen::Kernel& kernel : kernels) {
    wrapped.push_back(WrapForCpu(kernel));
    ours.push_back(KernelOf(kernel));
  }
  return std::make_shared<EmulatorModule>(this, kernels_.Compile(wrapped, wait), std::move(ours));
}

bool CudaEmulatorBackend::HasKernels(absl::Span<const std::string> names) {
  std::vector<std::string> wrapped;
  for (const std::string& name : names) wrapped.push_back(WrappedName(name));
  return kernels_.HasKernels(wrapped);
}

absl::Status CudaEmulatorBackend::Launch(absl::Span<const BoundInstance> instances) {
  const BlockLaunches launches(instances);
  std::vector<int64_t> image(launches.size_bytes() / sizeof(int64_t));
  char* const bytes = reinterpret_cast<char*>(image.data());
  launches.Write(bytes, reinterpret_cast<uint64_t>(bytes));
  absl::MutexLock lock(&launch_mutex_);
  for (const BlockLaunch& launch : launches.launches()) {
    base::Count(base::Counter::kKernelLaunches);
    runner_.Run({launch.kernel, launch.blocks, launch.entry, bytes + launch.arguments_at,
                 reinterpret_cast<const int*>(bytes + launch.first_block_at),
                 static_cast<int>(launch.instances.size())});
  }
  return absl::OkStatus();
}

}  // namespace torch_lazy::backends
