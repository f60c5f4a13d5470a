// SPDX-License-Identifier: Apache-2.0
// A backend that computes nothing: what is left of a program's time is the host's. Results are whatever the memory
// holds.
#pragma once

#include "backends/backend.h"
#include "backends/cpu/pool.h"

namespace torch_lazy::backends {

class NullBackend final : public Backend {
 public:
  explicit NullBackend(codegen::Target target) : target_(target) {}
  codegen::Target target() const override { return target_; }
  std::shared_ptr<Module> Compile(absl::Span<const codegen::Kernel>, bool) override {
    return std::make_shared<NullModule>();
  }
  absl::Status Launch(absl::Span<const BoundInstance>) override { return absl::OkStatus(); }
  void* Allocate(size_t size_bytes) override { return pool_.Allocate(size_bytes); }
  void Free(void* memory, size_t size_bytes) override { pool_.Free(memory, size_bytes); }
  bool computes() const override { return false; }

 private:
  class NullModule final : public Module {
   public:
    bool ready() const override { return true; }
    absl::Status status() const override { return absl::OkStatus(); }
    absl::Status StatusOf(int) const override { return absl::OkStatus(); }
    void Wait() override {}
    void* Function(int) const override { return nullptr; }
  };

  const codegen::Target target_;  // of the kernels that are planned, and not compiled
  Pool pool_;
};

}  // namespace torch_lazy::backends
