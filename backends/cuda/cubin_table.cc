// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cubin_table.h"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "backends/compiler_log.h"
#include "backends/cuda/at_work.h"
#include "backends/cuda/nvrtc.h"
#include "backends/disk/files.h"
#include "base/faults.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/status.h"

namespace torch_lazy::backends {
namespace {

constexpr char kVersion[] =
    "torch_lazy cuda 1";             // raise it when the meaning of a kernel's arguments changes
constexpr size_t kMostTogether = 8;  // kernels of a program: more save nothing
// A tenth of a busy processor: a program that keeps all of them busy would leave an idle thread
// nothing, for ever, and such a thread holds NVRTC's locks.
constexpr int kNice = 10;

size_t MostThreads() { return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 4); }

std::string SourceOf(absl::Span<const codegen::Kernel> kernels) {
  std::string source;
  for (const codegen::Kernel& kernel : kernels) absl::StrAppend(&source, InNamespace(kernel));
  return source;
}

}  // namespace

// The kernels of one Compile, in its order.
class CubinModule final : public Module {
 public:
  CubinModule(CubinTable* table, std::vector<CubinTable::Entry*> entries)
      : table_(table), entries_(std::move(entries)) {}

  bool ready() const override {
    absl::MutexLock lock(&table_->mutex_);
    return Ready();
  }
  absl::Status status() const override {
    absl::MutexLock lock(&table_->mutex_);
    for (const CubinTable::Entry* entry : entries_) {
      if (!entry->status.ok()) return entry->status;
    }
    return absl::OkStatus();
  }
  absl::Status StatusOf(int kernel) const override {
    absl::MutexLock lock(&table_->mutex_);
    return entries_[kernel]->status;
  }
  void Wait() override {
    while (const std::shared_ptr<CubinTable::Program> program = table_->Take(entries_))
      table_->Run(*program);
    absl::MutexLock lock(&table_->mutex_);
    table_->mutex_.Await(absl::Condition(this, &CubinModule::Ready));
  }
  void* Function(int kernel) const override { return &entries_[kernel]->kernel; }

 private:
  bool Ready() const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return std::none_of(entries_.begin(), entries_.end(),
                        [](const CubinTable::Entry* entry) { return entry->pending; });
  }

  CubinTable* const table_;
  const std::vector<CubinTable::Entry*> entries_;
};

std::shared_ptr<Module> CubinTable::Compile(absl::Span<const codegen::Kernel> kernels, bool wait) {
  std::vector<Entry*> wanted;
  Programs programs;
  cuda::WaitForWorkAtExit();
  {
    absl::MutexLock lock(&mutex_);
    LoadFromDisk(kernels);
    programs = NewPrograms(kernels);
    for (const codegen::Kernel& kernel : kernels) wanted.push_back(entries_[kernel.name].get());
    if (!wait && !programs.empty()) {
      queue_.insert(queue_.end(), programs.begin(), programs.end());
      StartThreads();
    }
  }
  auto module = std::make_shared<CubinModule>(this, std::move(wanted));
  if (wait) {
    RunAll(programs);
    module->Wait();  // for kernels that another Compile had begun
  }
  return module;
}

DiskCache* CubinTable::Cache() {
  const absl::StatusOr<const cuda::Nvrtc*> nvrtc = cuda::Nvrtc::Find();
  if (!nvrtc.ok()) return nullptr;  // then nothing can be said about what the disk holds either
  const std::string root = CacheRoot();
  if (!cache_.has_value() || cache_->root() != root) {
    cache_.emplace(root, kCubins,
                   absl::StrCat(kVersion, " | NVRTC ", (*nvrtc)->version(), " | ", arch_, " | ",
                                cuda::Nvrtc::Options()));
  }
  return &*cache_;
}

void CubinTable::Keep(absl::string_view key, absl::string_view word) {
  absl::MutexLock lock(&mutex_);
  if (DiskCache* cache = Cache()) cache->Keep(key, word);
}

std::string CubinTable::Recall(absl::string_view key) {
  absl::MutexLock lock(&mutex_);
  DiskCache* cache = Cache();
  return cache == nullptr ? "" : cache->Recall(key);
}

void CubinTable::LoadFromDisk(absl::Span<const codegen::Kernel> kernels) {
  DiskCache* const cache = Cache();
  if (cache == nullptr) return;
  std::map<std::string, std::vector<std::unique_ptr<Entry>>> found;  // by file
  for (const codegen::Kernel& kernel : kernels) {
    if (entries_.contains(kernel.name)) continue;
    const std::string file = cache->Find(kernel);
    if (file.empty()) continue;
    found[file].push_back(std::make_unique<Entry>(BlockKernelOf(kernel)));
  }
  for (auto& [file, entries] : found) {
    std::vector<BlockKernel*> loaded;
    for (const std::unique_ptr<Entry>& entry : entries) loaded.push_back(&entry->kernel);
    const absl::Status status = load_(ReadFile(file), loaded);
    LAZY_LOG(2, file, ": ", status.ok() ? "loaded" : status.message());
    if (!status.ok()) continue;  // they are compiled
    base::Count(base::Counter::kKernelsFromDisk, static_cast<int64_t>(entries.size()));
    for (std::unique_ptr<Entry>& entry : entries) {
      const std::string name = entry->kernel.name;
      entries_.try_emplace(name, std::move(entry));
    }
  }
}

CubinTable::Programs CubinTable::NewPrograms(absl::Span<const codegen::Kernel> kernels) {
  Program all;
  for (const codegen::Kernel& kernel : kernels) {
    std::unique_ptr<Entry>& entry = entries_[kernel.name];
    const bool is_new = entry == nullptr;
    if (is_new) entry = std::make_unique<Entry>(BlockKernelOf(kernel));
    if (entry->pending || (!is_new && !absl::IsNotFound(entry->status))) continue;
    entry->pending = true;
    entry->status = absl::OkStatus();
    all.kernels.push_back(kernel);
    if (base::MustSpoilKernel()) all.kernels.back().source += base::kSpoiltText;
    all.entries.push_back(entry.get());
  }
  const size_t number = all.kernels.size();
  Programs programs = InParts(
      all, std::max(std::min(number, MostThreads()), (number + kMostTogether - 1) / kMostTogether));
  base::Count(base::Counter::kKernelsCompiled, static_cast<int64_t>(number));
  base::Count(base::Counter::kCompilesPending, static_cast<int64_t>(number));
  return programs;
}

CubinTable::Programs CubinTable::InParts(const Program& all, size_t parts) {
  const size_t number = all.kernels.size();
  Programs programs;
  for (size_t k = 0; k < parts; ++k) {
    const size_t begin = number * k / parts, end = number * (k + 1) / parts;
    programs.push_back(std::make_shared<Program>(
        Program{{all.kernels.begin() + begin, all.kernels.begin() + end},
                {all.entries.begin() + begin, all.entries.begin() + end}}));
  }
  return programs;
}

void CubinTable::StartThreads() {
  const size_t wanted = std::min(MostThreads(), queue_.size());
  for (; num_threads_ < wanted; ++num_threads_) std::thread([this] { ServeQueue(); }).detach();
}

void CubinTable::RunAll(const Programs& programs) {
  std::atomic<size_t> next{0};
  const auto run = [&] {
    for (size_t k = next++; k < programs.size(); k = next++) Run(*programs[k]);
  };
  std::vector<std::thread> helpers;
  for (size_t k = 1; k < std::min(programs.size(), MostThreads()); ++k) helpers.emplace_back(run);
  run();
  for (std::thread& helper : helpers) helper.join();
}

void CubinTable::Run(const Program& program) {
  const absl::Time start = absl::Now();
  absl::Status status = CompileAndLoad(program);
  if (base::MustFail()) status = absl::InternalError("a fault that was asked for");
  const absl::Duration took = absl::Now() - start;
  base::Count(base::Counter::kCompileSeconds, absl::ToInt64Nanoseconds(took));
  LAZY_LOG(2, "compiled ", program.kernels.size(), " kernels in ", absl::FormatDuration(took));
  const bool is_kernels_fault = absl::IsInvalidArgument(status);
  if (is_kernels_fault && program.kernels.size() > 1) {  // until the one at fault is alone
    for (const std::shared_ptr<Program>& half : InParts(program, 2)) Run(*half);
    return;
  }
  const auto number = static_cast<int64_t>(program.kernels.size());
  if (!status.ok() && !absl::IsCancelled(status)) {
    base::WriteDump(base::MakeDumpFolder("failed-compile"), "kernels.cu",
                    SourceOf(program.kernels));
    base::Count(base::Counter::kKernelsFailed, number);
    base::Count(base::Counter::kKernelsCompiled, -number);
    if (!is_kernels_fault) WarnOfCompiler(status);
  }
  absl::MutexLock lock(&mutex_);
  for (Entry* const entry : program.entries) {
    entry->status = status;
    entry->pending = false;
  }
  base::Count(base::Counter::kCompilesPending, -number);
}

absl::Status CubinTable::CompileAndLoad(const Program& program) {
  const cuda::AtWork work;
  if (!work.may_begin()) return absl::CancelledError("the program exits");
  LAZY_ASSIGN_OR_RETURN(const cuda::Nvrtc* const nvrtc, cuda::Nvrtc::Find());
  LAZY_ASSIGN_OR_RETURN(const std::string cubin, nvrtc->Compile(SourceOf(program.kernels), arch_));
  std::vector<BlockKernel*> kernels;
  for (Entry* const entry : program.entries) kernels.push_back(&entry->kernel);
  LAZY_RETURN_IF_ERROR(load_(cubin, kernels));
  absl::MutexLock lock(&mutex_);
  if (DiskCache* cache = Cache()) cache->Store(program.kernels, cubin);
  return absl::OkStatus();
}

std::shared_ptr<CubinTable::Program> CubinTable::Take(absl::Span<Entry* const> entries) {
  absl::MutexLock lock(&mutex_);
  const auto found = std::find_if(queue_.begin(), queue_.end(), [&](const auto& program) {
    return std::find_first_of(entries.begin(), entries.end(), program->entries.begin(),
                              program->entries.end()) != entries.end();
  });
  if (found == queue_.end()) return nullptr;
  std::shared_ptr<Program> program = *found;
  queue_.erase(found);
  return program;
}

void CubinTable::ServeQueue() {
  sigset_t signals;  // they are for the program's own threads
  sigfillset(&signals);
  pthread_sigmask(SIG_SETMASK, &signals, nullptr);
  setpriority(PRIO_PROCESS, 0, kNice);  // of this thread alone, on Linux
  for (;;) {
    std::shared_ptr<Program> program;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(
          +[](std::deque<std::shared_ptr<Program>>* queue) { return !queue->empty(); }, &queue_));
      program = std::move(queue_.front());
      queue_.pop_front();
    }
    Run(*program);
  }
}

}  // namespace torch_lazy::backends
