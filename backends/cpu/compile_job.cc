// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile_job.h"

#include <dlfcn.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "backends/compiler_log.h"
#include "backends/cpu/child.h"
#include "base/faults.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/status.h"

namespace torch_lazy::backends {
namespace {

// A program that keeps all processors busy leaves an idle compiler nothing, for ever.
constexpr absl::Duration kPatience = absl::Seconds(1);
constexpr absl::Duration kTurn = absl::Milliseconds(50);
constexpr absl::Duration kTimeLimit = absl::Minutes(5);

std::string SourceOf(absl::Span<const codegen::Kernel> kernels) {
  std::string source;
  for (const codegen::Kernel& kernel : kernels) absl::StrAppend(&source, kernel.source, "\n");
  return source;
}

}  // namespace

absl::StatusOr<std::vector<void*>> LoadKernels(const std::string& library,
                                               absl::Span<const codegen::Kernel> kernels) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const std::string error = dlerror();
    return absl::StrContains(error, "undefined symbol") ? absl::InvalidArgumentError(error)
                                                        : absl::InternalError(error);
  }
  std::vector<void*> functions;
  for (const codegen::Kernel& kernel : kernels) {
    functions.push_back(dlsym(handle, kernel.name.c_str()));
    if (functions.back() == nullptr)
      return absl::InvalidArgumentError(absl::StrCat(library, ": no symbol ", kernel.name));
  }
  return functions;
}

void CompileJob::Start(bool idle) {
  started_at_ = absl::Now();
  idle_ = idle;
  start_status_ = WriteSource();
  if (start_status_.ok()) {
    start_status_ = StartCompiler(idle ? Priority::kIdle : Priority::kNormal);
  }
}

absl::Status CompileJob::WriteSource() {
  LAZY_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::Make());
  folder_.emplace(std::move(folder));
  source_ = absl::StrCat(folder_->path(), "/kernels.cc");
  library_ = absl::StrCat(folder_->path(), "/kernels.so");
  return WriteFileWhole(source_, SourceOf(kernels_));
}

absl::Status CompileJob::StartCompiler(Priority priority) {
  LAZY_ASSIGN_OR_RETURN(const Compiler compiler, FindCompiler());
  absl::MutexLock lock(&mutex_);
  ChildOptions options;
  options.arguments = CompileCommand(compiler, source_, library_);
  options.output_file = absl::StrCat(folder_->path(), "/output.txt");
  options.priority = hurried_ ? Priority::kNormal : priority;
  LAZY_ASSIGN_OR_RETURN(child_, StartChild(options));
  return absl::OkStatus();
}

pid_t CompileJob::child() {
  absl::MutexLock lock(&mutex_);
  return child_;
}

pid_t CompileJob::TakeChild() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(child_, 0);
}

bool CompileJob::Raise() {
  absl::MutexLock lock(&mutex_);
  return SetPriority(child_, hurried_ ? Priority::kNormal : Priority::kLow);
}

absl::Status CompileJob::AwaitCompiler() {
  if (!idle_) EndsWithin(child(), kTimeLimit);
  for (int turn = 0; idle_ && turn < kTimeLimit / kTurn && !EndsWithin(child(), kTurn); ++turn) {
    if (turn == kPatience / kTurn && !Raise()) {
      EndChild(TakeChild()).IgnoreError();
      LAZY_RETURN_IF_ERROR(StartCompiler(Priority::kLow));
    }
    absl::MutexLock lock(&mutex_);
    if (!hurried_) MoveOn(child_, turn);
  }
  return EndChild(TakeChild());
}

absl::StatusOr<std::vector<void*>> CompileJob::FinishAndLoad() {
  LAZY_RETURN_IF_ERROR(start_status_);
  const absl::Status ended = AwaitCompiler();
  const absl::Duration took = absl::Now() - started_at_;
  base::Count(base::Counter::kCompileSeconds, absl::ToInt64Nanoseconds(took));
  LAZY_LOG(2, "compiled ", kernels_.size(), " kernels in ", absl::FormatDuration(took));
  if (base::MustFail()) return absl::InternalError("a fault that was asked for");
  if (!ended.ok()) {
    const std::string output =
        absl::StrReplaceAll(ReadFile(absl::StrCat(folder_->path(), "/output.txt")),
                            {{absl::StrCat(folder_->path(), "/"), ""}});
    base::WriteDump(base::MakeDumpFolder("failed-compile"), "kernels.cc", SourceOf(kernels_));
    return absl::InvalidArgumentError(
        absl::StrCat("the C++ compiler failed: ", ended.message(), "\n", FirstErrors(output)));
  }
  return LoadKernels(library_, kernels_);
}

void CompileJob::Hurry() {
  absl::MutexLock lock(&mutex_);
  hurried_ = true;
  if (child_ == 0) return;
  SetPriority(child_, Priority::kNormal);
  Release(child_);
}

}  // namespace torch_lazy::backends
