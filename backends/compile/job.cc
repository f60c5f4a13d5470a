// SPDX-License-Identifier: Apache-2.0
#include "backends/compile/job.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "backends/compile/carry_out.h"
#include "backends/disk/places.h"
#include "base/at_work.h"
#include "base/faults.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/status.h"

namespace torch_lazy::backends {
namespace {

// A program that keeps all processors busy leaves an idle process nothing, for ever.
constexpr absl::Duration kPatience = absl::Seconds(1);
constexpr absl::Duration kJobTurn = absl::Milliseconds(50);
constexpr absl::Duration kJobTimeLimit = absl::Minutes(7);  // the process's own is shorter

bool IsProgram(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

// torch_lazy_compile, beside the file that this code is in, or in lib beside that file's folder;
// empty if it is not there.
std::string FindProcess() {
  Dl_info info = {};
  char file[PATH_MAX];
  if (dladdr(reinterpret_cast<void*>(&FindProcess), &info) == 0 || info.dli_fname == nullptr) return "";
  // A name that is not absolute depends on the current folder, or was looked up in PATH.
  const char* const name = info.dli_fname[0] == '/' ? info.dli_fname : "/proc/self/exe";
  if (realpath(name, file) == nullptr) return "";
  const std::string path = file;
  const std::string folder = path.substr(0, path.rfind('/'));
  for (const char* const place : {"", "/../lib"}) {
    std::string found = absl::StrCat(folder, place, "/torch_lazy_compile");
    if (IsProgram(found)) return found;
  }
  base::WarnOnce("torch_lazy_compile",
                 absl::StrCat("torch_lazy_compile is not in ", folder, ", so threads of the program compile"));
  return "";
}

}  // namespace

const std::string& CompileProcess() {
  static const std::string& process = *new std::string(FindProcess());
  return process;
}

CompileJob::~CompileJob() {
  if (const pid_t child = TakeChild(); child != 0) EndChild(child).IgnoreError();
}

void CompileJob::Start(absl::StatusOr<Order> order, bool idle, int lock) {
  started_at_ = absl::Now();
  idle_ = idle;
  lock_ = lock;
  here_ = CompileProcess().empty();
  start_status_ = Prepare(std::move(order));
  if (start_status_.ok() && !here_) start_status_ = StartProcess(idle ? Priority::kIdle : Priority::kNormal);
}

absl::Status CompileJob::Prepare(absl::StatusOr<Order> order) {
  LAZY_ASSIGN_OR_RETURN(order_, std::move(order));
  order_.process = getpid();
  order_.kernels = kernels_;
  if (here_) return absl::OkStatus();
  // The process does not know our options, so it is told.
  if (order_.language == Order::Language::kCpp) {
    LAZY_ASSIGN_OR_RETURN(temporary_place_, TemporaryPlace());
  }
  LAZY_ASSIGN_OR_RETURN(order_file_, MemoryFile::Make());
  return order_file_.Write(TextOf(order_));
}

absl::Status CompileJob::StartProcess(Priority priority) {
  LAZY_ASSIGN_OR_RETURN(result_file_, MemoryFile::Make());
  order_file_.Rewind();
  absl::MutexLock lock(&mutex_);
  ChildOptions options;
  options.arguments = {CompileProcess()};
  options.temporary_folder = temporary_place_;
  options.files = {order_file_.file(), result_file_.file()};
  if (lock_ >= 0) options.files.push_back(lock_);
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

absl::Status CompileJob::AwaitProcess() {
  if (!idle_) EndsWithin(child(), kJobTimeLimit);
  for (int turn = 0; idle_ && turn < kJobTimeLimit / kJobTurn && !EndsWithin(child(), kJobTurn); ++turn) {
    if (turn == kPatience / kJobTurn && !Raise()) {
      AskChildToEnd(TakeChild()).IgnoreError();
      LAZY_RETURN_IF_ERROR(StartProcess(Priority::kLow));
    }
    absl::MutexLock lock(&mutex_);
    // Those of CUDA are many at a time, and would all be on one processor.
    if (!hurried_ && order_.language == Order::Language::kCpp) MoveOn(child_, turn);
  }
  return EndChild(TakeChild());
}

// NVRTC's own data end at exit, and what does that is registered while it first compiles.
Compiled CompileJob::CarryOutHere() {
  const base::AtWork work;  // the exit waits until a compiler has been ended
  if (order_.language == Order::Language::kCpp) {
    return CarryOut(order_, {.own_group = true, .must_stop = &base::IsExiting});
  }
  const base::MustEnd must_end;
  Compiled compiled = CarryOut(order_, {});
  base::WatchForExit();
  return compiled;
}

absl::StatusOr<Compiled> CompileJob::Result() {
  LAZY_RETURN_IF_ERROR(start_status_);
  if (here_) return CarryOutHere();
  const absl::Status ended = AwaitProcess();
  const absl::StatusOr<std::string> text = result_file_.Read();
  if (text.ok() && !text->empty()) return CompiledFrom(*text);
  return absl::InternalError(absl::StrCat("the process that compiles: ", ended.message()));
}

absl::StatusOr<std::string> CompileJob::Finish() {
  const absl::StatusOr<Compiled> compiled = Result();
  const absl::StatusOr<std::string> code = compiled.ok() ? compiled->code : compiled.status();
  const absl::Duration took = absl::Now() - started_at_;
  base::Count(base::Counter::kCompileSeconds, absl::ToInt64Nanoseconds(took));
  LAZY_LOG(2, "compiled ", kernels_.size(), " kernels in ", absl::FormatDuration(took));
  if (code.ok() && !compiled->kept.ok()) {
    base::WarnOnce("disk cache", absl::StrCat("compiled kernels are not kept on disk: ", compiled->kept.message()));
  }
  if (base::MustFail()) return absl::InternalError("a fault that was asked for");
  if (!code.ok() && start_status_.ok() && !kernels_.empty()) {
    const bool is_cpp = order_.language == Order::Language::kCpp;
    base::WriteDump(base::MakeDumpFolder("failed-compile"), is_cpp ? "kernels.cc" : "kernels.cu",
                    SourceOf(order_.language, kernels_));
  }
  return code;
}

void CompileJob::Hurry() {
  absl::MutexLock lock(&mutex_);
  if (std::exchange(hurried_, true) || child_ == 0) return;
  SetPriority(child_, Priority::kNormal);
  Release(child_);
}

}  // namespace torch_lazy::backends
