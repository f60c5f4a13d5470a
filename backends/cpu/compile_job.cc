// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile_job.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "backends/cpu/child.h"
#include "base/faults.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/status.h"

namespace torch_lazy::backends {
namespace {

constexpr absl::Duration kTimeLimit = absl::Minutes(5);
constexpr size_t kMostOutput = 2000;  // of what a failing compiler says

std::string SourceOf(absl::Span<const codegen::Kernel> kernels) {
  std::string source;
  for (const codegen::Kernel& kernel : kernels) absl::StrAppend(&source, kernel.source, "\n");
  return source;
}

}  // namespace

absl::StatusOr<std::vector<void*>> LoadKernels(const std::string& library,
                                               absl::Span<const codegen::Kernel> kernels) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return absl::InternalError(dlerror());
  std::vector<void*> functions;
  for (const codegen::Kernel& kernel : kernels) {
    functions.push_back(dlsym(handle, kernel.name.c_str()));
    if (functions.back() == nullptr)
      return absl::InternalError(absl::StrCat(library, ": no symbol ", kernel.name));
  }
  return functions;
}

void CompileJob::Start(bool idle) {
  started_at_ = absl::Now();
  start_status_ = TryStart(idle);
}

absl::Status CompileJob::TryStart(bool idle) {
  LAZY_ASSIGN_OR_RETURN(const Compiler compiler, FindCompiler());
  LAZY_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::Make());
  folder_.emplace(std::move(folder));
  const std::string source = absl::StrCat(folder_->path(), "/kernels.cc");
  library_ = absl::StrCat(folder_->path(), "/kernels.so");
  LAZY_RETURN_IF_ERROR(WriteFileWhole(source, SourceOf(kernels_)));

  absl::MutexLock lock(&mutex_);
  ChildOptions options;
  options.arguments = CompileCommand(compiler, source, library_);
  options.output_file = absl::StrCat(folder_->path(), "/output.txt");
  options.idle = idle && !hurried_;
  LAZY_ASSIGN_OR_RETURN(child_, StartChild(options));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<void*>> CompileJob::FinishAndLoad() {
  LAZY_RETURN_IF_ERROR(start_status_);
  pid_t child = 0;
  {
    absl::MutexLock lock(&mutex_);
    child = child_;
  }
  const absl::Status ended = WaitForChild(child, kTimeLimit);
  {
    absl::MutexLock lock(&mutex_);
    child_ = 0;
  }
  const absl::Duration took = absl::Now() - started_at_;
  base::Count(base::Counter::kCompileSeconds, absl::ToInt64Nanoseconds(took));
  LAZY_LOG(2, "compiled ", kernels_.size(), " kernels in ", absl::FormatDuration(took));
  if (base::MustFail()) return absl::InternalError("a fault that was asked for");
  if (!ended.ok()) {
    const std::string output =
        ReadFile(absl::StrCat(folder_->path(), "/output.txt")).substr(0, kMostOutput);
    base::WriteDump(base::MakeDumpFolder("failed-compile"), "kernels.cc", SourceOf(kernels_));
    return absl::InternalError(
        absl::StrCat("the C++ compiler failed: ", ended.message(), "\n", output));
  }
  return LoadKernels(library_, kernels_);
}

void CompileJob::Hurry() {
  absl::MutexLock lock(&mutex_);
  hurried_ = true;
  if (child_ != 0) RaiseChild(child_);
}

}  // namespace torch_lazy::backends
