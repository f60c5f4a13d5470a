// SPDX-License-Identifier: Apache-2.0
// All kernels of this process: loaded, failed, or being compiled.
//
// A kernel is looked for in memory, then on disk, then compiled. Its name is the fingerprint of its
// text, so the first to ask for it compiles it for everybody: other processes that ask for the same
// kernels wait for it. One thread of ours does nothing but wait for compilers.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "backends/backend.h"
#include "backends/cpu/compile_job.h"
#include "backends/disk/disk_cache.h"
#include "backends/disk/files.h"

namespace torch_lazy::backends {

class KernelTable {
 public:
  std::shared_ptr<Module> Compile(absl::Span<const codegen::Kernel> kernels, bool wait);
  // Backend::Keep and Recall.
  void Keep(absl::string_view key, absl::string_view word) ABSL_LOCKS_EXCLUDED(mutex_);
  std::string Recall(absl::string_view key) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class KernelModule;
  struct Entry {
    void* function = nullptr;
    absl::Status status;              // why there is no function
    std::shared_ptr<CompileJob> job;  // not null: neither is known yet
  };
  using Jobs = std::vector<std::shared_ptr<CompileJob>>;

  absl::StatusOr<void*> LoadFromDisk(const codegen::Kernel& kernel)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LoadFromDisk(absl::Span<const codegen::Kernel> kernels)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Jobs NewJobs(absl::Span<const codegen::Kernel> kernels, bool wait)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // All are entered at its end, whatever happens.
  void Run(const Jobs& jobs, bool idle) ABSL_LOCKS_EXCLUDED(mutex_);
  void TryRun(const Jobs& jobs, bool idle) ABSL_LOCKS_EXCLUDED(mutex_);
  // Held, unless another process compiles the same kernels now.
  FileLock Claim(const CompileJob& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for that, though not for ever.
  FileLock AwaitClaim(const CompileJob& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // An error unless all are there.
  absl::StatusOr<std::vector<void*>> FindOnDisk(const CompileJob& job) ABSL_LOCKS_EXCLUDED(mutex_);
  void Enter(const CompileJob& job, const absl::StatusOr<std::vector<void*>>& functions)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Store(const CompileJob& job, const std::string& library) ABSL_LOCKS_EXCLUDED(mutex_);
  DiskCache* Cache() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ServeQueue();

  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::unique_ptr<Entry>> entries_
      ABSL_GUARDED_BY(mutex_);  // by name; never removed
  std::optional<DiskCache> cache_ ABSL_GUARDED_BY(mutex_);
  std::deque<Jobs> queue_ ABSL_GUARDED_BY(mutex_);
  bool has_thread_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace torch_lazy::backends
