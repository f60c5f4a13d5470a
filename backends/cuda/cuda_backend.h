// SPDX-License-Identifier: Apache-2.0
// A GPU of NVIDIA's as a backend.
#pragma once

#include "backends/backend.h"
#include "backends/cuda/cuda_host.h"

namespace torch_lazy::backends {

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const CudaHost& host) : host_(host) {}
  bool on_host() const override { return false; }
  codegen::Target target() const override { return codegen::Target::kCuda; }
  std::shared_ptr<Module> Compile(absl::Span<const codegen::Kernel>, bool) override {
    return std::make_shared<NoModule>();
  }
  void Launch(absl::Span<const BoundInstance>) override {}
  void* Allocate(size_t size_bytes) override { return host_.allocate(size_bytes); }
  void Free(void* memory, size_t size_bytes) override { host_.free(memory, size_bytes); }

 private:
  class NoModule final : public Module {
   public:
    bool ready() const override { return true; }
    absl::Status status() const override { return absl::UnimplementedError("no kernels for CUDA"); }
    void Wait() override {}
    void* Function(int) const override { return nullptr; }
  };
  const CudaHost host_;
};

}  // namespace torch_lazy::backends
