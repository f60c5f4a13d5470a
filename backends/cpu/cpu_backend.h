// SPDX-License-Identifier: Apache-2.0
// The CPU as a backend.
#pragma once

#include "backends/backend.h"
#include "backends/cpu/copy_speed.h"
#include "backends/cpu/kernel_table.h"
#include "backends/cpu/launch.h"
#include "backends/cpu/pool.h"

namespace torch_lazy::backends {

class CpuBackend final : public Backend {
 public:
  std::shared_ptr<Module> Compile(absl::Span<const codegen::Kernel> kernels, bool wait) override {
    return kernels_.Compile(kernels, wait);
  }
  absl::Status Launch(absl::Span<const BoundInstance> instances) override { return LaunchOnCpu(instances); }
  void OfferLaunches(std::atomic<uint32_t>* offers) override { OfferLaunchesOnCpu(offers); }
  bool Help() override { return HelpOnCpu(); }
  void* Allocate(size_t size_bytes) override { return pool_.Allocate(size_bytes); }
  void Free(void* memory, size_t size_bytes) override { pool_.Free(memory, size_bytes); }
  void Settle() override { pool_.Settle(); }
  void Keep(absl::string_view key, absl::string_view word) override { kernels_.Keep(key, word); }
  std::string Recall(absl::string_view key) override { return kernels_.Recall(key); }
  bool HasKernels(absl::Span<const std::string> names) override { return kernels_.HasKernels(names); }
  void LeaveBehind(absl::Span<const LeftGraph> graphs) override { kernels_.LeaveBehind(graphs); }
  double CopySpeed() override { return CopySpeedOfCpu(); }

 private:
  KernelTable kernels_;
  Pool pool_;
};

}  // namespace torch_lazy::backends
