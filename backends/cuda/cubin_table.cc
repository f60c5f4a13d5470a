// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cubin_table.h"

#include <algorithm>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/compile/left_work.h"
#include "backends/compiler_log.h"
#include "backends/cuda/nvrtc.h"
#include "backends/disk/places.h"
#include "base/at_work.h"
#include "base/faults.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/status.h"
#include "base/thread.h"
#include "base/wait.h"

namespace torch_lazy::backends {
namespace {

constexpr char kVersion[] = "torch_lazy cuda 1";  // raise it when the meaning of a kernel's arguments changes
constexpr size_t kMostTogether = 8;               // kernels of a program: more save nothing
// A process has 80 MB, three quarters of them NVRTC's file.
size_t MostProcesses() { return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 16); }

// Programs for so many kernels: one for each process, or for each equally many.
size_t NumPrograms(size_t kernels) {
  const size_t processes = MostProcesses();
  const size_t turns = (kernels + kMostTogether * processes - 1) / (kMostTogether * processes);
  return std::min(kernels, turns * processes);
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
    do {  // again and again: a program that fails becomes two others
      table_->Hurry(entries_);
    } while (!IsReadyWithin(base::kWaitTurn) && !base::MustStopWaiting());
  }
  void* Function(int kernel) const override { return &entries_[kernel]->kernel; }

 private:
  bool IsReadyWithin(absl::Duration limit) const {
    absl::MutexLock lock(&table_->mutex_);
    return table_->mutex_.AwaitWithTimeout(absl::Condition(this, &CubinModule::Ready), limit);
  }
  bool Ready() const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return std::none_of(entries_.begin(), entries_.end(),
                        [](const CubinTable::Entry* entry) { return entry->job != nullptr; });
  }

  CubinTable* const table_;
  const std::vector<CubinTable::Entry*> entries_;
};

std::shared_ptr<Module> CubinTable::Compile(absl::Span<const codegen::Kernel> kernels, bool wait) {
  std::vector<Entry*> wanted;
  bool has_threads = false;
  {
    const base::MustEnd driver;
    absl::MutexLock lock(&mutex_);
    LoadFromDisk(kernels);
    const Programs programs = NewPrograms(kernels);
    for (const codegen::Kernel& kernel : kernels) wanted.push_back(entries_[kernel.name].get());
    Add(programs);
    StartThreads();
    has_threads = num_threads_ > 0;
  }
  while (!has_threads && !base::IsExiting() && RunNext()) continue;
  auto module = std::make_shared<CubinModule>(this, std::move(wanted));
  if (wait) module->Wait();
  return module;
}

DiskCache* CubinTable::Cache() {
  const absl::StatusOr<const cuda::Nvrtc*> nvrtc = cuda::Nvrtc::Find();
  if (!nvrtc.ok()) return nullptr;  // then nothing can be said about what the disk holds either
  const std::string root = CacheRoot();
  if (!cache_.has_value() || cache_->root() != root) {
    cache_.emplace(
        root, kCubins,
        absl::StrCat(kVersion, " | NVRTC ", (*nvrtc)->version(), " | ", arch_, " | ", cuda::Nvrtc::Options()));
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

bool CubinTable::HasKernels(absl::Span<const std::string> names) {
  absl::MutexLock lock(&mutex_);
  DiskCache* const cache = Cache();
  return std::ranges::all_of(names, [&](const std::string& name) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const auto found = entries_.find(name);
    if (found != entries_.end()) return found->second->job == nullptr && found->second->status.ok();
    return cache != nullptr && cache->Names(name);
  });
}

void CubinTable::LoadFromDisk(absl::Span<const codegen::Kernel> kernels) {
  DiskCache* const cache = Cache();
  if (cache == nullptr) return;
  struct Found {
    std::string cubin;
    std::vector<std::unique_ptr<Entry>> entries;
  };
  std::map<std::string, Found> found;  // by batch
  for (const codegen::Kernel& kernel : kernels) {
    if (entries_.contains(kernel.name)) continue;
    const absl::StatusOr<DiskCache::Code> code = cache->Find(kernel);
    if (!code.ok()) continue;
    Found& batch = found[code->batch];
    if (batch.entries.empty()) batch.cubin = code->file.Read();
    batch.entries.push_back(std::make_unique<Entry>(BlockKernelOf(kernel)));
  }
  for (auto& [batch, code] : found) {
    std::vector<std::unique_ptr<Entry>>& entries = code.entries;
    std::vector<BlockKernel*> loaded;
    for (const std::unique_ptr<Entry>& entry : entries) loaded.push_back(&entry->kernel);
    const absl::Status status = load_(code.cubin, loaded);
    LAZY_LOG(2, batch, ": ", status.ok() ? "loaded" : status.message());
    if (!status.ok()) continue;  // they are compiled
    base::Count(base::Counter::kKernelsFromDisk, static_cast<int64_t>(entries.size()));
    for (std::unique_ptr<Entry>& entry : entries) {
      const std::string name = entry->kernel.name;
      entries_.try_emplace(name, std::move(entry));
    }
  }
}

CubinTable::Programs CubinTable::NewPrograms(absl::Span<const codegen::Kernel> kernels) {
  std::vector<NewKernel> missing;
  for (const codegen::Kernel& kernel : kernels) {
    std::unique_ptr<Entry>& entry = entries_[kernel.name];
    const bool is_new = entry == nullptr;
    if (is_new) entry = std::make_unique<Entry>(BlockKernelOf(kernel));
    if (entry->job != nullptr || (!is_new && !absl::IsNotFound(entry->status))) continue;
    missing.push_back({kernel, entry.get()});
    if (base::MustSpoilKernel()) missing.back().kernel.source += base::kSpoiltText;
  }
  base::Count(base::Counter::kKernelsCompiled, static_cast<int64_t>(missing.size()));
  base::Count(base::Counter::kCompilesPending, static_cast<int64_t>(missing.size()));
  return InPrograms(std::move(missing), NumPrograms(missing.size()));
}

// The dearest first, each into the program that has the least to do yet.
CubinTable::Programs CubinTable::InPrograms(std::vector<NewKernel> kernels, size_t number) {
  const auto cost = [](const NewKernel& kernel) { return kernel.kernel.source.size(); };
  std::ranges::stable_sort(kernels, std::greater<>(), cost);
  const size_t most = number == 0 ? 0 : (kernels.size() + number - 1) / number;
  std::vector<std::vector<codegen::Kernel>> texts(number);
  std::vector<size_t> costs(number, 0);
  Programs programs(number);
  for (NewKernel& kernel : kernels) {
    size_t least = number;
    for (size_t k = 0; k < number; ++k) {
      if (texts[k].size() < most && (least == number || costs[k] < costs[least])) least = k;
    }
    costs[least] += cost(kernel);
    programs[least].entries.push_back(kernel.entry);
    texts[least].push_back(std::move(kernel.kernel));
  }
  for (size_t k = 0; k < number; ++k) {
    programs[k].cost = costs[k];
    programs[k].job = std::make_shared<CompileJob>(std::move(texts[k]));
    for (Entry* const entry : programs[k].entries) {
      entry->job = programs[k].job;
      entry->status = absl::OkStatus();
    }
  }
  return programs;
}

// What takes long begins before the rest, which else would be done while one process goes on.
void CubinTable::Add(const Programs& programs) {
  constexpr size_t kLong = 2;  // times the mean
  queue_.insert(queue_.end(), programs.begin(), programs.end());
  size_t cost = 0;
  for (const Program& program : queue_) cost += program.cost;
  const auto is_long = [&](const Program& program) { return program.cost * queue_.size() > kLong * cost; };
  std::ranges::stable_partition(queue_, is_long);
}

void CubinTable::StartThreads() {
  const size_t wanted = std::min(MostProcesses(), queue_.size());
  while (num_threads_ < wanted && base::StartThread([this] { ServeQueue(); })) ++num_threads_;
}

absl::StatusOr<Order> CubinTable::NewOrder() {
  LAZY_ASSIGN_OR_RETURN(const cuda::Nvrtc* const nvrtc, cuda::Nvrtc::Find());
  DiskCache* const cache = Cache();
  Order order;
  order.language = Order::Language::kCuda;
  order.command = {nvrtc->file(), arch_};
  order.cache_root = cache == nullptr ? "" : cache->root();
  order.cache_key = cache == nullptr ? "" : cache->key();
  return order;
}

// The lock may be a thread's that works on for a while: the exit does not wait for it.
void CubinTable::LeaveBehind(absl::Span<const LeftGraph> graphs) {
  if (!mutex_.TryLock()) return;
  absl::StatusOr<Order> order = NewOrder();
  Programs queue;
  if (order.ok()) queue.swap(queue_);
  for (const Program& program : queue)
    order->kernels.insert(order->kernels.end(), program.job->kernels().begin(), program.job->kernels().end());
  for (const auto& [name, entry] : entries_) {
    if (order.ok() && entry->job != nullptr) order->others.push_back(name);
  }
  mutex_.Unlock();
  if (order.ok()) backends::LeaveBehind(*std::move(order), graphs);
}

absl::Status CubinTable::LoadProgram(const Program& program, const std::string& cubin) {
  std::vector<BlockKernel*> kernels;
  for (Entry* const entry : program.entries) kernels.push_back(&entry->kernel);
  const base::MustEnd driver;
  const absl::Status status = load_(cubin, kernels);
  absl::MutexLock lock(&mutex_);
  if (DiskCache* const cache = status.ok() ? nullptr : Cache()) cache->Forget(program.job->kernels());
  return status;
}

void CubinTable::Run(const Program& program) {
  try {
    TryRun(program);
  } catch (const std::exception& error) {  // no memory: somebody may wait for these kernels
    Enter(program, absl::InternalError(error.what()));
  }
}

void CubinTable::TryRun(const Program& program) {
  {
    const base::AtWork work;
    absl::StatusOr<Order> order;
    {
      absl::MutexLock lock(&mutex_);
      order = NewOrder();
    }
    program.job->Start(std::move(order), /*idle=*/true);
  }
  const absl::StatusOr<std::string> cubin = program.job->Finish();
  const base::AtWork work;
  const absl::Status status = cubin.ok() ? LoadProgram(program, *cubin) : cubin.status();
  if (!absl::IsInvalidArgument(status) || program.entries.size() == 1) return Enter(program, status);
  absl::MutexLock lock(&mutex_);  // a kernel is at fault: until it is alone
  std::vector<NewKernel> kernels;
  for (size_t k = 0; k < program.entries.size(); ++k)
    kernels.push_back({program.job->kernels()[k], program.entries[k]});
  const Programs halves = InPrograms(std::move(kernels), 2);
  queue_.insert(queue_.begin(), halves.begin(), halves.end());
}

void CubinTable::Enter(const Program& program, const absl::Status& status) {
  int64_t entered = 0;
  absl::MutexLock lock(&mutex_);
  for (Entry* const entry : program.entries) {
    if (entry->job != program.job) continue;  // it is another's by now
    ++entered;
    entry->status = status;
    entry->job = nullptr;
  }
  base::Count(base::Counter::kCompilesPending, -entered);
  if (status.ok() || entered == 0) return;
  base::Count(base::Counter::kKernelsFailed, entered);
  base::Count(base::Counter::kKernelsCompiled, -entered);
  if (!absl::IsInvalidArgument(status)) WarnOfCompiler(status);
}

void CubinTable::Hurry(absl::Span<Entry* const> entries) {
  absl::MutexLock lock(&mutex_);
  for (const Entry* const entry : entries) {
    if (entry->job != nullptr) entry->job->Hurry();
  }
  std::stable_partition(queue_.begin(), queue_.end(), [&](const Program& program) {
    return std::find_first_of(entries.begin(), entries.end(), program.entries.begin(), program.entries.end()) !=
           entries.end();
  });
}

bool CubinTable::RunNext() {
  Program program;
  {
    absl::MutexLock lock(&mutex_);
    if (queue_.empty()) return false;
    program = std::move(queue_.front());
    queue_.pop_front();
  }
  Run(program);
  return true;
}

void CubinTable::ServeQueue() {
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(
          +[](Programs* queue) { return !queue->empty(); }, &queue_));
    }
    RunNext();
  }
}

}  // namespace torch_lazy::backends
