// SPDX-License-Identifier: Apache-2.0
// All kernels of this process: loaded, failed, or being compiled.
//
// A kernel is looked for in memory, then on disk, then compiled. Its name is the fingerprint of its
// text, so the first to ask for it compiles it for everybody: other processes that ask for the same
// kernels wait for it. Threads of ours do nothing but wait for compilers: one for what nobody waits
// for, a few kernels at a time, and one for each batch that somebody does.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "backends/backend.h"
#include "backends/compile/job.h"
#include "backends/disk/disk_cache.h"
#include "backends/disk/files.h"

namespace torch_lazy::backends {

class KernelTable {
 public:
  std::shared_ptr<Module> Compile(absl::Span<const codegen::Kernel> kernels, bool wait);
  // Backend's functions of these names.
  void Keep(absl::string_view key, absl::string_view word) ABSL_LOCKS_EXCLUDED(mutex_);
  std::string Recall(absl::string_view key) ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasKernels(absl::Span<const std::string> names) ABSL_LOCKS_EXCLUDED(mutex_);
  void LeaveBehind(absl::Span<const LeftGraph> graphs) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class KernelModule;
  struct Entry {
    void* function = nullptr;
    absl::Status status;              // why there is no function
    std::shared_ptr<CompileJob> job;  // not null: neither is known yet
  };
  using Jobs = std::vector<std::shared_ptr<CompileJob>>;

  absl::StatusOr<void*> FindOnDisk(const codegen::Kernel& kernel) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LoadFromDisk(absl::Span<const codegen::Kernel> kernels) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Jobs NewJobs(absl::Span<const codegen::Kernel> kernels, bool wait) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // So many jobs for these kernels, whose entries wait for them.
  Jobs InBatches(absl::Span<const codegen::Kernel> kernels, size_t batches) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Jobs Halves(const CompileJob& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // All are entered at its end, whatever happens.
  void Run(const Jobs& jobs, bool idle) ABSL_LOCKS_EXCLUDED(mutex_);
  void TryRun(const Jobs& jobs, bool idle) ABSL_LOCKS_EXCLUDED(mutex_);
  // Held, unless another process compiles the same kernels now.
  FileLock Claim(const CompileJob& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for that, though not for ever.
  FileLock AwaitClaim(const CompileJob& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // An error unless all are there.
  absl::StatusOr<std::vector<void*>> FindOnDisk(const CompileJob& job) ABSL_LOCKS_EXCLUDED(mutex_);
  void Enter(const CompileJob& job, const absl::StatusOr<std::vector<void*>>& functions) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Order> NewOrder() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Order> NewOrder(std::string lock_path) ABSL_LOCKS_EXCLUDED(mutex_);
  // False if it cannot compile an empty text either: no kernel is to blame then.
  bool CompilerWorks(bool idle) ABSL_LOCKS_EXCLUDED(mutex_);
  // What the job has made.
  absl::StatusOr<std::vector<void*>> Load(const CompileJob& job, const std::string& code) ABSL_LOCKS_EXCLUDED(mutex_);
  DiskCache* Cache() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Jobs NextInQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ServeQueue();

  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::unique_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);  // by name; never removed
  std::optional<DiskCache> cache_ ABSL_GUARDED_BY(mutex_);
  std::deque<Jobs> queue_ ABSL_GUARDED_BY(mutex_);
  bool has_thread_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace torch_lazy::backends
