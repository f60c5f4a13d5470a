// SPDX-License-Identifier: Apache-2.0
// All CUDA kernels of this process: loaded, failed, or being compiled.
//
// A kernel is looked for in memory, then on disk, then compiled, by a process a program, with low
// priority, as many side by side as there are processors; what somebody waits for comes first.
// Several kernels share a program, since each takes less time there than in a program of its own.
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
#include "backends/blocks/block_kernel.h"
#include "backends/compile/job.h"
#include "backends/disk/disk_cache.h"

namespace torch_lazy::backends {

class CubinTable {
 public:
  // Loads a program's code and sets its kernels' entries. kInvalidArgument: a kernel is at fault.
  // From any thread.
  using Load = std::function<absl::Status(const std::string& cubin, absl::Span<BlockKernel* const> kernels)>;

  // `arch`: such as "sm_90". Lives as long as the process, since it may have threads.
  CubinTable(std::string arch, Load load) : arch_(std::move(arch)), load_(std::move(load)) {}

  // Functions are BlockKernels.
  std::shared_ptr<Module> Compile(absl::Span<const codegen::Kernel> kernels, bool wait);
  // Backend's functions of these names.
  void Keep(absl::string_view key, absl::string_view word) ABSL_LOCKS_EXCLUDED(mutex_);
  std::string Recall(absl::string_view key) ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasKernels(absl::Span<const std::string> names) ABSL_LOCKS_EXCLUDED(mutex_);
  void LeaveBehind(absl::Span<const LeftGraph> graphs) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class CubinModule;
  struct Entry {
    BlockKernel kernel;
    absl::Status status;
    std::shared_ptr<CompileJob> job;  // not null: neither loaded nor failed yet
  };
  struct NewKernel {
    codegen::Kernel kernel;
    Entry* entry;
  };
  // Kernels compiled together.
  struct Program {
    std::shared_ptr<CompileJob> job;
    std::vector<Entry*> entries;  // its kernels'
    size_t cost = 0;              // letters of its texts: a compiler takes about as long
  };
  using Programs = std::deque<Program>;

  DiskCache* Cache() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LoadFromDisk(absl::Span<const codegen::Kernel> kernels) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Programs NewPrograms(absl::Span<const codegen::Kernel> kernels) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // So many programs for these kernels, whose entries wait for them; no program gets more kernels than it must.
  static Programs InPrograms(std::vector<NewKernel> kernels, size_t number);
  // Queues them.
  void Add(const Programs& programs) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartThreads() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Its kernels are entered at its end, whatever happens, or become those of two others.
  void Run(const Program& program) ABSL_LOCKS_EXCLUDED(mutex_);
  void TryRun(const Program& program) ABSL_LOCKS_EXCLUDED(mutex_);
  void Enter(const Program& program, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  bool RunNext() ABSL_LOCKS_EXCLUDED(mutex_);  // false if nothing is queued
  absl::Status LoadProgram(const Program& program, const std::string& cubin) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Order> NewOrder() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Somebody waits for these.
  void Hurry(absl::Span<Entry* const> entries) ABSL_LOCKS_EXCLUDED(mutex_);
  void ServeQueue();

  const std::string arch_;
  const Load load_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::unique_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);  // by name; never removed
  std::optional<DiskCache> cache_ ABSL_GUARDED_BY(mutex_);
  Programs queue_ ABSL_GUARDED_BY(mutex_);
  size_t num_threads_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace torch_lazy::backends
