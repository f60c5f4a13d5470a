// SPDX-License-Identifier: Apache-2.0
// All CUDA kernels of this process: loaded, failed, or being compiled.
//
// A kernel is looked for in memory, then on disk, then compiled. NVRTC has no process, so up to
// four threads of ours with low priority compile while the program goes on; who waits takes what
// nobody has begun. A kernel of a program of its own takes 63 ms, in a program of eight 41 (two
// entries each, a sum with exponentials), and programs compile side by side.
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
#include "backends/disk/disk_cache.h"

namespace torch_lazy::backends {

class CubinTable {
 public:
  // Loads a program's code and sets its kernels' entries. kInvalidArgument: a kernel is at fault.
  // From any thread.
  using Load =
      std::function<absl::Status(const std::string& cubin, absl::Span<BlockKernel* const> kernels)>;

  // `arch`: such as "sm_90". Lives as long as the process, since it may have threads.
  CubinTable(std::string arch, Load load) : arch_(std::move(arch)), load_(std::move(load)) {}

  // Functions are BlockKernels.
  std::shared_ptr<Module> Compile(absl::Span<const codegen::Kernel> kernels, bool wait);
  // Backend::Keep and Recall.
  void Keep(absl::string_view key, absl::string_view word) ABSL_LOCKS_EXCLUDED(mutex_);
  std::string Recall(absl::string_view key) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class CubinModule;
  struct Entry {
    BlockKernel kernel;
    absl::Status status;
    bool pending = false;  // neither loaded nor failed yet
  };
  // Kernels compiled together.
  struct Program {
    std::vector<codegen::Kernel> kernels;
    std::vector<Entry*> entries;  // theirs
  };
  using Programs = std::vector<std::shared_ptr<Program>>;

  DiskCache* Cache() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LoadFromDisk(absl::Span<const codegen::Kernel> kernels)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Programs NewPrograms(absl::Span<const codegen::Kernel> kernels)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static Programs InParts(const Program& all, size_t parts);
  void StartThreads() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunAll(const Programs& programs) ABSL_LOCKS_EXCLUDED(mutex_);
  void Run(const Program& program) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CompileAndLoad(const Program& program) ABSL_LOCKS_EXCLUDED(mutex_);
  // One that nobody has begun and that has one of these; null if there is none.
  std::shared_ptr<Program> Take(absl::Span<Entry* const> entries) ABSL_LOCKS_EXCLUDED(mutex_);
  void ServeQueue();

  const std::string arch_;
  const Load load_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::unique_ptr<Entry>> entries_
      ABSL_GUARDED_BY(mutex_);  // by name; never removed
  std::optional<DiskCache> cache_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<Program>> queue_ ABSL_GUARDED_BY(mutex_);
  size_t num_threads_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace torch_lazy::backends
