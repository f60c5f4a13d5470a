// SPDX-License-Identifier: Apache-2.0
// A machine that writes down what it is asked for.
//
// A program that links fake_backend.cc runs on it in the place of a real one: the file defines what
// backends/registry.cc defines elsewhere. The fake computes nothing by itself. A test says what a launch does, and
// which kernels fail or take long:
//
//   Fake().launch = [](const Launched& launched) { ... return absl::OkStatus(); };
//   Fake().refuse = [](const codegen::Kernel& kernel) { return absl::InvalidArgumentError("bad"); };
//   Fake().is_slow = true;
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "backends/backend.h"
#include "backends/cpu/pool.h"

namespace torch_lazy::backends {

// An instance as it was launched.
struct Launched {
  std::string kernel;
  std::vector<void*> buffers;
  std::vector<int64_t> extents;
  std::vector<double> scalars;
  int64_t iterations;
};

class FakeBackend final : public Backend {
 public:
  // --- what a test says, before it runs anything ---
  std::function<absl::Status(const Launched&)> launch;         // null: succeeds
  std::function<absl::Status(const codegen::Kernel&)> refuse;  // null: all kernels compile
  bool is_slow = false;                                        // kernels are ready when FinishCompiling() is called
  bool does_compute = true;                                    // libraries are called, too
  codegen::Target made_for = codegen::Target::kCpu;            // of the whole process: lazy/ asks once
  bool is_stand_in = false;                                    // a GPU's kernels, the host's memory; likewise

  // --- what it was asked for ---
  int num_compiles() const;                   // calls of Compile
  std::vector<std::string> compiled() const;  // kernels, in their order
  std::vector<Launched> launched() const;     // instances, in their order
  int num_launches() const;                   // calls of Launch

  void FinishCompiling();
  // Says and has been asked for nothing; what is kept beside kernels is forgotten.
  void Reset();

  // --- as a backend ---
  codegen::Target target() const override { return made_for; }
  bool on_host() const override { return made_for == codegen::Target::kCpu || is_stand_in; }
  std::shared_ptr<Module> Compile(absl::Span<const codegen::Kernel> kernels, bool wait) override;
  absl::Status Launch(absl::Span<const BoundInstance> instances) override;
  void* Allocate(size_t size_bytes) override { return pool_.Allocate(size_bytes); }
  void Free(void* memory, size_t size_bytes) override { pool_.Free(memory, size_bytes); }
  void Keep(absl::string_view key, absl::string_view word) override;
  std::string Recall(absl::string_view key) override;
  bool computes() const override { return does_compute; }

 private:
  class FakeModule;
  mutable absl::Mutex mutex_;
  std::vector<std::shared_ptr<FakeModule>> modules_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> compiled_ ABSL_GUARDED_BY(mutex_);
  std::vector<Launched> launched_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string, std::less<>> kept_ ABSL_GUARDED_BY(mutex_);
  int num_compiles_ ABSL_GUARDED_BY(mutex_) = 0;
  int num_launches_ ABSL_GUARDED_BY(mutex_) = 0;
  Pool pool_;
};

// The process's only one.
FakeBackend& Fake();

}  // namespace torch_lazy::backends
