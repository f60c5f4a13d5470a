// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernel_table.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "backends/compile/left_work.h"
#include "backends/compiler_log.h"
#include "backends/cpu/compiler.h"
#include "backends/cpu/load_kernels.h"
#include "backends/disk/places.h"
#include "base/at_work.h"
#include "base/faults.h"
#include "base/metrics.h"
#include "base/status.h"
#include "base/thread.h"
#include "base/wait.h"

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
    do {  // again and again: a batch that fails becomes two others
      absl::MutexLock lock(&table_->mutex_);
      for (const KernelTable::Entry* entry : entries_) {
        if (entry->job != nullptr) entry->job->Hurry();
      }
    } while (!IsReadyWithin(base::kWaitTurn) && !base::MustStopWaiting());
  }
  void* Function(int kernel) const override {
    absl::MutexLock lock(&table_->mutex_);
    return entries_[kernel]->function;
  }

 private:
  bool IsReadyWithin(absl::Duration limit) const {
    absl::MutexLock lock(&table_->mutex_);
    return table_->mutex_.AwaitWithTimeout(absl::Condition(this, &KernelModule::Ready), limit);
  }
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
    if (!wait && !jobs.empty() && !has_thread_) has_thread_ = base::StartThread([this] { ServeQueue(); });
    if (!wait && has_thread_) {
      for (const std::shared_ptr<CompileJob>& job : std::exchange(jobs, {})) queue_.push_back({job});
    }
  }
  auto module = std::make_shared<KernelModule>(this, std::move(wanted));
  const bool beside = wait && !jobs.empty() && base::StartThread([this, jobs] { Run(jobs, /*idle=*/false); });
  if (!beside && !jobs.empty() && !base::IsExiting()) Run(jobs, /*idle=*/!wait);
  if (wait) module->Wait();
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

bool KernelTable::HasKernels(absl::Span<const std::string> names) {
  absl::MutexLock lock(&mutex_);
  DiskCache* const cache = Cache();
  return std::ranges::all_of(names, [&](const std::string& name) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const auto found = entries_.find(name);
    if (found != entries_.end()) return found->second->function != nullptr;
    return cache != nullptr && cache->Names(name);
  });
}

absl::StatusOr<void*> KernelTable::FindOnDisk(const codegen::Kernel& kernel) {
  DiskCache* cache = Cache();
  if (cache == nullptr) return absl::NotFoundError(kernel.name);
  LAZY_ASSIGN_OR_RETURN(const DiskCache::Code library, cache->Find(kernel));
  LAZY_ASSIGN_OR_RETURN(const std::vector<void*> function,
                        LoadKernels(library.file.LoadPath(), absl::MakeConstSpan(&kernel, 1)));
  return function[0];
}

void KernelTable::LoadFromDisk(absl::Span<const codegen::Kernel> kernels) {
  for (const codegen::Kernel& kernel : kernels) {
    if (entries_.contains(kernel.name)) continue;
    const absl::StatusOr<void*> function = FindOnDisk(kernel);
    if (!function.ok()) continue;  // it is compiled
    base::Count(base::Counter::kKernelsFromDisk);
    auto entry = std::make_unique<Entry>();
    entry->function = *function;
    entries_[kernel.name] = std::move(entry);
  }
}

absl::StatusOr<std::vector<void*>> KernelTable::FindOnDisk(const CompileJob& job) {
  absl::MutexLock lock(&mutex_);
  std::vector<void*> functions;
  for (const codegen::Kernel& kernel : job.kernels()) {
    LAZY_ASSIGN_OR_RETURN(functions.emplace_back(), FindOnDisk(kernel));
  }
  return functions;
}

KernelTable::Jobs KernelTable::NewJobs(absl::Span<const codegen::Kernel> kernels, bool wait) {
  std::vector<codegen::Kernel> missing;
  for (const codegen::Kernel& kernel : kernels) {
    const auto [it, is_new] = entries_.try_emplace(kernel.name);
    if (is_new) it->second = std::make_unique<Entry>();
    Entry& entry = *it->second;
    const bool failed_before = entry.job == nullptr && entry.function == nullptr && !entry.status.ok();
    if (!is_new && !(failed_before && absl::IsNotFound(entry.status))) continue;
    missing.push_back(kernel);
    if (base::MustSpoilKernel()) missing.back().source += base::kSpoiltText;
  }
  const size_t in_background = (missing.size() + kMostOfBatch - 1) / kMostOfBatch;
  const size_t batches = !wait || missing.empty() ? in_background : missing.size() >= kSplitFrom ? 2 : 1;
  Jobs jobs = InBatches(missing, batches);
  base::Count(base::Counter::kKernelsCompiled, static_cast<int64_t>(missing.size()));
  base::Count(base::Counter::kCompilesPending, static_cast<int64_t>(missing.size()));
  return jobs;
}

KernelTable::Jobs KernelTable::InBatches(absl::Span<const codegen::Kernel> kernels, size_t batches) {
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
  return cache == nullptr ? FileLock::Try(nullptr, "") : cache->Lock(job.kernels());
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
  try {
    TryRun(jobs, idle);
  } catch (const std::exception& error) {  // no memory: somebody may wait for these kernels
    for (const std::shared_ptr<CompileJob>& job : jobs) Enter(*job, absl::InternalError(error.what()));
  }
}

void KernelTable::TryRun(const Jobs& jobs, bool idle) {
  std::vector<std::optional<FileLock>> claims(jobs.size());
  std::vector<absl::StatusOr<std::vector<void*>>> results(jobs.size());
  const auto start = [&](size_t k) {
    const base::AtWork work;
    results[k] = FindOnDisk(*jobs[k]);  // another process may have stored them meanwhile
    if (!results[k].ok()) return jobs[k]->Start(NewOrder(claims[k]->path()), idle, claims[k]->file());
    const auto number = static_cast<int64_t>(jobs[k]->kernels().size());
    base::Count(base::Counter::kKernelsFromDisk, number);
    base::Count(base::Counter::kKernelsCompiled, -number);
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
    absl::StatusOr<std::string> code;
    if (!results[k].ok()) code = jobs[k]->Finish();
    if (!results[k].ok()) results[k] = code.ok() ? Load(*jobs[k], *code) : code.status();
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

bool KernelTable::CompilerWorks(bool idle) {
  CompileJob empty({});
  empty.Start(NewOrder(/*lock_path=*/""), idle);
  return empty.Finish().ok();
}

absl::StatusOr<Order> KernelTable::NewOrder() {
  LAZY_ASSIGN_OR_RETURN(const Compiler compiler, FindCompiler());
  DiskCache* const cache = Cache();
  Order order;
  order.command = compiler.command;
  order.cache_root = cache == nullptr ? "" : cache->root();
  order.cache_key = compiler.key;
  return order;
}

absl::StatusOr<Order> KernelTable::NewOrder(std::string lock_path) {
  absl::MutexLock lock(&mutex_);
  LAZY_ASSIGN_OR_RETURN(Order order, NewOrder());
  order.lock_path = std::move(lock_path);
  return order;
}

// The lock may be a thread's that works on for a while: the exit does not wait for it.
void KernelTable::LeaveBehind(absl::Span<const LeftGraph> graphs) {
  if (!mutex_.TryLock()) return;
  absl::StatusOr<Order> order = NewOrder();
  std::deque<Jobs> queue;
  if (order.ok()) queue.swap(queue_);
  for (const Jobs& jobs : queue) {
    for (const std::shared_ptr<CompileJob>& job : jobs)
      order->kernels.insert(order->kernels.end(), job->kernels().begin(), job->kernels().end());
  }
  for (const auto& [name, entry] : entries_) {
    if (order.ok() && entry->job != nullptr) order->others.push_back(name);
  }
  mutex_.Unlock();
  if (order.ok()) backends::LeaveBehind(*std::move(order), graphs);
}

absl::StatusOr<std::vector<void*>> KernelTable::Load(const CompileJob& job, const std::string& code) {
  const base::AtWork work;
  absl::StatusOr<std::vector<void*>> functions = FindOnDisk(job);
  if (!functions.ok()) functions = LoadCode(code, job.kernels());
  absl::MutexLock lock(&mutex_);
  if (DiskCache* const cache = functions.ok() ? nullptr : Cache()) cache->Forget(job.kernels());
  return functions;
}

void KernelTable::Enter(const CompileJob& job, const absl::StatusOr<std::vector<void*>>& functions) {
  const base::AtWork work;
  int64_t entered = 0;
  absl::MutexLock lock(&mutex_);
  for (size_t k = 0; k < job.kernels().size(); ++k) {
    Entry& entry = *entries_[job.kernels()[k].name];
    if (entry.job.get() != &job) continue;  // it has been entered, or is another job's by now
    ++entered;
    if (functions.ok()) entry.function = (*functions)[k];
    entry.status = functions.status();
    entry.job = nullptr;
  }
  base::Count(base::Counter::kCompilesPending, -entered);
  if (functions.ok() || entered == 0) return;
  base::Count(base::Counter::kKernelsFailed, entered);
  base::Count(base::Counter::kKernelsCompiled, -entered);
  if (!absl::IsInvalidArgument(functions.status())) WarnOfCompiler(functions.status());
}

// With as many behind it as make one batch: to start a compiler takes longer than a kernel does.
KernelTable::Jobs KernelTable::NextInQueue() {
  std::vector<codegen::Kernel> kernels;
  Jobs jobs;
  do {
    jobs = std::move(queue_.front());
    queue_.pop_front();
    kernels.insert(kernels.end(), jobs.front()->kernels().begin(), jobs.front()->kernels().end());
  } while (!queue_.empty() && kernels.size() + queue_.front().front()->kernels().size() <= kMostOfBatch);
  return kernels.size() == jobs.front()->kernels().size() ? jobs : InBatches(kernels, 1);
}

void KernelTable::ServeQueue() {
  for (;;) {
    Jobs jobs;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(
          +[](std::deque<Jobs>* queue) { return !queue->empty(); }, &queue_));
      jobs = NextInQueue();
    }
    Run(jobs, /*idle=*/true);
  }
}

}  // namespace torch_lazy::backends
