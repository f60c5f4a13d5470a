// SPDX-License-Identifier: Apache-2.0
// One compiler process: a batch of kernels from text to loaded functions.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "backends/cpu/child.h"
#include "backends/cpu/compiler.h"
#include "backends/disk/files.h"
#include "codegen/plan.h"

namespace torch_lazy::backends {

// Opens a library for good and looks the kernels up in it, in order. kInvalidArgument: a kernel is
// at fault.
absl::StatusOr<std::vector<void*>> LoadKernels(const std::string& library,
                                               absl::Span<const codegen::Kernel> kernels);

class CompileJob {
 public:
  explicit CompileJob(std::vector<codegen::Kernel> kernels) : kernels_(std::move(kernels)) {}

  const std::vector<codegen::Kernel>& kernels() const { return kernels_; }

  // Starts the compiler; with `idle`, only on time that nobody else wants.
  void Start(bool idle);
  // Waits for it and loads the library. kInvalidArgument: a kernel is at fault. `keep` sees the
  // library's file before it is removed.
  template <typename Keep>
  absl::StatusOr<std::vector<void*>> Finish(Keep keep) {
    absl::StatusOr<std::vector<void*>> functions = FinishAndLoad();
    if (functions.ok()) keep(library_);
    folder_.reset();
    return functions;
  }
  // Somebody waits now: an idle compiler gets its normal share. From any thread.
  void Hurry();

 private:
  absl::Status WriteSource();
  absl::Status StartCompiler(Priority priority);
  absl::Status AwaitCompiler();
  bool Raise() ABSL_LOCKS_EXCLUDED(mutex_);
  pid_t child() ABSL_LOCKS_EXCLUDED(mutex_);
  pid_t TakeChild() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::vector<void*>> FinishAndLoad();

  const std::vector<codegen::Kernel> kernels_;
  std::optional<TemporaryFolder> folder_;
  std::string source_;
  std::string library_;
  absl::Time started_at_;
  absl::Status start_status_;
  bool idle_ = false;
  absl::Mutex mutex_;
  bool hurried_ ABSL_GUARDED_BY(mutex_) = false;
  pid_t child_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: not running
};

}  // namespace torch_lazy::backends
