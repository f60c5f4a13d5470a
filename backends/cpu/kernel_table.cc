// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernel_table.h"

#include <signal.h>

#include <thread>

#include "absl/time/clock.h"
#include "backends/compiler_log.h"
#include "base/faults.h"
#include "base/metrics.h"
#include "base/status.h"

namespace torch_lazy::backends {

// The kernels of one Compile, in its order.
class KernelModule final : public Module {
 public:
  KernelModule(KernelTable* table, std::vector<KernelTable::Entry*> entries)
      : table_(table), entries_(std::move(entries)) {}

  bool ready() const override {
    absl::MutexLock lock(&table_->mutex_);
    return Ready();
  }
  absl::Status status() const override {
    absl::MutexLock lock(&table_->mutex_);
    for (const KernelTable::Entry* entry : entries_) {
      if (!entry->status.ok()) return entry->status;
    }
    return absl::OkStatus();
  }
  absl::Status StatusOf(int kernel) const override {
    absl::MutexLock lock(&table_->mutex_);
    return entries_[kernel]->status;
  }
  void Wait() override {
    absl::MutexLock lock(&table_->mutex_);
    for (const KernelTable::Entry* entry : entries_) {
      if (entry->job != nullptr) entry->job->Hurry();
    }
    table_->mutex_.Await(absl::Condition(this, &KernelModule::Ready));
  }
  void* Function(int kernel) const override {
    absl::MutexLock lock(&table_->mutex_);
    return entries_[kernel]->function;
  }

 private:
  bool Ready() const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (const KernelTable::Entry* entry : entries_) {
      if (entry->job != nullptr) return false;
    }
    return true;
  }

  KernelTable* const table_;
  const std::vector<KernelTable::Entry*> entries_;
};

namespace {

constexpr size_t kSplitFrom = 8;  // with so many kernels a second process halves the wait
// False if it cannot compile an empty text either: no kernel is to blame then.
bool CompilerWorks(bool idle) {
  CompileJob empty({});
  empty.Start(idle);
  return empty.Finish([](const std::string&) {}).ok();
}

// How long another process's compiler is waited for: it may be stopped, or have no time at all.
constexpr absl::Duration kPatience = absl::Seconds(20);

}  // namespace

std::shared_ptr<Module> KernelTable::Compile(absl::Span<const codegen::Kernel> kernels, bool wait) {
  std::vector<Entry*> wanted;
  Jobs jobs;
  {
    absl::MutexLock lock(&mutex_);
    LoadFromDisk(kernels);
    jobs = NewJobs(kernels, wait);
    for (const codegen::Kernel& kernel : kernels) wanted.push_back(entries_[kernel.name].get());
    if (!wait && !jobs.empty()) queue_.push_back(jobs);
    if (!queue_.empty() && !has_thread_) {
      has_thread_ = true;
      std::thread([this] { ServeQueue(); }).detach();
    }
  }
  if (wait) Run(jobs, /*idle=*/false);
  auto module = std::make_shared<KernelModule>(this, std::move(wanted));
  if (wait) module->Wait();  // for kernels that another Compile had begun
  return module;
}

DiskCache* KernelTable::Cache() {
  const absl::StatusOr<Compiler> compiler = FindCompiler();
  if (!compiler.ok()) return nullptr;  // then nothing can be said about what the disk holds either
  const std::string root = CacheRoot();
  if (!cache_.has_value() || cache_->root() != root || cache_->key() != compiler->key) {
    cache_.emplace(root, kLibraries, compiler->key);
  }
  return &*cache_;
}

void KernelTable::Keep(absl::string_view key, absl::string_view word) {
  absl::MutexLock lock(&mutex_);
  if (DiskCache* cache = Cache()) cache->Keep(key, word);
}

std::string KernelTable::Recall(absl::string_view key) {
  absl::MutexLock lock(&mutex_);
  DiskCache* cache = Cache();
  return cache == nullptr ? "" : cache->Recall(key);
}

absl::StatusOr<void*> KernelTable::LoadFromDisk(const codegen::Kernel& kernel) {
  DiskCache* cache = Cache();
  const std::string library = cache == nullptr ? "" : cache->Find(kernel);
  if (library.empty()) return absl::NotFoundError(kernel.name);
  LAZY_ASSIGN_OR_RETURN(const std::vector<void*> function,
                        LoadKernels(library, absl::MakeConstSpan(&kernel, 1)));
  base::Count(base::Counter::kKernelsFromDisk);
  return function[0];
}

void KernelTable::LoadFromDisk(absl::Span<const codegen::Kernel> kernels) {
  for (const codegen::Kernel& kernel : kernels) {
    if (entries_.contains(kernel.name)) continue;
    const absl::StatusOr<void*> function = LoadFromDisk(kernel);
    if (!function.ok()) continue;  // it is compiled
    auto entry = std::make_unique<Entry>();
    entry->function = *function;
    entries_[kernel.name] = std::move(entry);
  }
}

absl::StatusOr<std::vector<void*>> KernelTable::FindOnDisk(const CompileJob& job) {
  absl::MutexLock lock(&mutex_);
  std::vector<void*> functions;
  for (const codegen::Kernel& kernel : job.kernels()) {
    LAZY_ASSIGN_OR_RETURN(functions.emplace_back(), LoadFromDisk(kernel));
  }
  return functions;
}

KernelTable::Jobs KernelTable::NewJobs(absl::Span<const codegen::Kernel> kernels, bool wait) {
  std::vector<codegen::Kernel> missing;
  for (const codegen::Kernel& kernel : kernels) {
    const auto [it, is_new] = entries_.try_emplace(kernel.name);
    if (is_new) it->second = std::make_unique<Entry>();
    Entry& entry = *it->second;
    const bool failed_before =
        entry.job == nullptr && entry.function == nullptr && !entry.status.ok();
    if (!is_new && !(failed_before && absl::IsNotFound(entry.status))) continue;
    missing.push_back(kernel);
    if (base::MustSpoilKernel()) missing.back().source += base::kSpoiltText;
  }
  const size_t batches = missing.empty() ? 0 : wait && missing.size() >= kSplitFrom ? 2 : 1;
  Jobs jobs = InBatches(missing, batches);
  base::Count(base::Counter::kKernelsCompiled, static_cast<int64_t>(missing.size()));
  base::Count(base::Counter::kCompilesPending, static_cast<int64_t>(missing.size()));
  return jobs;
}

KernelTable::Jobs KernelTable::InBatches(absl::Span<const codegen::Kernel> kernels,
                                         size_t batches) {
  Jobs jobs;
  for (size_t b = 0; b < batches; ++b) {
    std::vector<codegen::Kernel> batch(kernels.begin() + kernels.size() * b / batches,
                                       kernels.begin() + kernels.size() * (b + 1) / batches);
    auto job = std::make_shared<CompileJob>(std::move(batch));
    for (const codegen::Kernel& kernel : job->kernels()) {
      entries_[kernel.name]->job = job;
      entries_[kernel.name]->status = absl::OkStatus();
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

KernelTable::Jobs KernelTable::Halves(const CompileJob& job) {
  absl::MutexLock lock(&mutex_);
  return InBatches(job.kernels(), 2);
}

FileLock KernelTable::Claim(const CompileJob& job) {
  absl::MutexLock lock(&mutex_);
  DiskCache* cache = Cache();
  return FileLock::Try(cache == nullptr ? "" : cache->LockPath(job.kernels()));
}

FileLock KernelTable::AwaitClaim(const CompileJob& job) {
  const absl::Time deadline = absl::Now() + kPatience;
  for (;;) {
    FileLock claim = Claim(job);
    if (claim.held() || absl::Now() > deadline) return claim;
    absl::SleepFor(absl::Milliseconds(5));
  }
}

void KernelTable::Run(const Jobs& jobs, bool idle) {
  std::vector<std::optional<FileLock>> claims(jobs.size());
  std::vector<absl::StatusOr<std::vector<void*>>> results(jobs.size());
  const auto start = [&](size_t k) {
    results[k] = FindOnDisk(*jobs[k]);  // another process may have stored them meanwhile
    if (!results[k].ok()) return jobs[k]->Start(idle);
    base::Count(base::Counter::kKernelsCompiled, -static_cast<int64_t>(jobs[k]->kernels().size()));
  };
  for (size_t k = 0; k < jobs.size(); ++k) {
    claims[k].emplace(Claim(*jobs[k]));
    if (claims[k]->held()) start(k);
  }
  for (size_t k = 0; k < jobs.size(); ++k) {
    if (!claims[k]->held()) {
      claims[k].emplace(AwaitClaim(*jobs[k]));
      start(k);
    }
    if (!results[k].ok()) {
      results[k] = jobs[k]->Finish([&](const std::string& library) { Store(*jobs[k], library); });
    }
    bool is_kernels_fault = absl::IsInvalidArgument(results[k].status());
    if (is_kernels_fault && !CompilerWorks(idle)) {
      is_kernels_fault = false;
      results[k] = absl::InternalError(results[k].status().message());
    }
    if (is_kernels_fault && jobs[k]->kernels().size() > 1) {
      Run(Halves(*jobs[k]), idle);  // until the one at fault is alone
    } else {
      Enter(*jobs[k], results[k]);
    }
    claims[k].reset();
  }
}

void KernelTable::Store(const CompileJob& job, const std::string& library) {
  absl::MutexLock lock(&mutex_);
  if (DiskCache* cache = Cache()) cache->Store(job.kernels(), ReadFile(library));
}

void KernelTable::Enter(const CompileJob& job,
                        const absl::StatusOr<std::vector<void*>>& functions) {
  const auto number = static_cast<int64_t>(job.kernels().size());
  if (!functions.ok()) {
    base::Count(base::Counter::kKernelsFailed, number);
    base::Count(base::Counter::kKernelsCompiled, -number);
    if (!absl::IsInvalidArgument(functions.status())) WarnOfCompiler(functions.status());
  }
  absl::MutexLock lock(&mutex_);
  for (size_t k = 0; k < job.kernels().size(); ++k) {
    Entry& entry = *entries_[job.kernels()[k].name];
    if (functions.ok()) entry.function = (*functions)[k];
    entry.status = functions.status();
    entry.job = nullptr;
  }
  base::Count(base::Counter::kCompilesPending, -number);
}

void KernelTable::ServeQueue() {
  sigset_t signals;  // they are for the program's own threads
  sigfillset(&signals);
  pthread_sigmask(SIG_SETMASK, &signals, nullptr);
  for (;;) {
    Jobs jobs;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(
          +[](std::deque<Jobs>* queue) { return !queue->empty(); }, &queue_));
      jobs = std::move(queue_.front());
      queue_.pop_front();
    }
    Run(jobs, /*idle=*/true);
  }
}

}  // namespace torch_lazy::backends
