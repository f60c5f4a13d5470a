// SPDX-License-Identifier: Apache-2.0
// One process that compiles: a batch of kernels from text to code.
//
// It is a program of ours, torch_lazy_compile, which lies beside this library, and runs the C++
// compiler or NVRTC. So nothing of these runs in the program's threads, either can be limited and
// ended, and what is compiled when the program ends is kept all the same. Where that program is
// missing, the thread that awaits the job compiles.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "backends/compile/child.h"
#include "backends/compile/memory_file.h"
#include "backends/compile/order.h"
#include "codegen/plan/plan.h"

namespace torch_lazy::backends {

// The file of that program; empty if it is missing.
const std::string& CompileProcess();

class CompileJob {
 public:
  explicit CompileJob(std::vector<codegen::Kernel> kernels) : kernels_(std::move(kernels)) {}
  ~CompileJob();  // a process that nobody waits for any more is killed
  CompileJob(const CompileJob&) = delete;
  CompileJob& operator=(const CompileJob&) = delete;

  const std::vector<codegen::Kernel>& kernels() const { return kernels_; }

  // Starts the process; with `idle`, only on time that nobody else wants. The order's kernels are
  // ours. `lock`, an open file, is the process's, too; -1: there is none.
  void Start(absl::StatusOr<Order> order, bool idle, int lock = -1);
  // Waits for it. The code, which is in the order's cache by then; kInvalidArgument: a kernel does
  // not compile.
  absl::StatusOr<std::string> Finish();
  // Somebody waits now: the process gets its normal share, at once where Linux lets us; else an
  // idle one by a new start when its first second is over. From any thread.
  void Hurry();

 private:
  absl::Status Prepare(absl::StatusOr<Order> order);
  absl::Status StartProcess(Priority priority);
  absl::Status AwaitProcess();
  Compiled CarryOutHere();
  absl::StatusOr<Compiled> Result();
  bool Raise() ABSL_LOCKS_EXCLUDED(mutex_);
  pid_t child() ABSL_LOCKS_EXCLUDED(mutex_);
  pid_t TakeChild() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::vector<codegen::Kernel> kernels_;
  Order order_;
  std::string temporary_place_;  // TMPDIR of the process; empty: ours
  MemoryFile order_file_;
  MemoryFile result_file_;
  int lock_ = -1;
  absl::Time started_at_;
  absl::Status start_status_;
  bool idle_ = false;
  bool here_ = false;  // there is no process
  absl::Mutex mutex_;
  bool hurried_ ABSL_GUARDED_BY(mutex_) = false;
  pid_t child_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: not running
};

}  // namespace torch_lazy::backends
