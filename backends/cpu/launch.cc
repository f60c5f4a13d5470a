// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/launch.h"

#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/faults.h"
#include "base/metrics.h"
#include "base/of_thread.h"

namespace torch_lazy::backends {
namespace {

// Below this a second thread costs more than it brings. A region is far dearer when another thread has a team, too.
constexpr double kSerialNanoseconds = 12000;

using Function = void (*)(void* const* buffers, const int64_t* extents, const double* scalars, int64_t begin,
                          int64_t end, void* scratch);

// A thread's scratch memory grows to what its kernels asked for and stays.
class Scratch {
 public:
  ~Scratch() { free(memory_); }
  // False if the system has no more.
  bool Reserve(int64_t size_bytes) {
    if (size_bytes <= size_bytes_) return true;
    const int64_t wanted = (size_bytes + 4095) / 4096 * 4096;
    free(memory_);
    memory_ = base::MustFail() ? nullptr : aligned_alloc(64, wanted);
    size_bytes_ = memory_ == nullptr ? 0 : wanted;
    return memory_ != nullptr;
  }
  void* memory() const { return memory_; }

 private:
  void* memory_ = nullptr;
  int64_t size_bytes_ = 0;
};

Scratch& ScratchOfThread() { return base::OfThread<Scratch>(); }

int64_t ScratchBytes(absl::Span<const BoundInstance> instances) {
  int64_t most = 0;
  for (const BoundInstance& instance : instances) most = std::max(most, instance.scratch_bytes);
  return most;
}

// The thread has reserved the instance's scratch memory.
void RunRange(const BoundInstance& instance, int64_t begin, int64_t end) {
  if (begin >= end) return;
  const auto function = reinterpret_cast<Function>(instance.function);
  function(instance.buffers.data(), instance.extents.data(), instance.scalars.data(), begin, end,
           ScratchOfThread().memory());
}

double Cost(const BoundInstance& instance) {
  return static_cast<double>(instance.iterations) * instance.cost_per_iteration;
}

// The iteration at which a share that starts `cost` nanoseconds into the instance begins.
// Neighbours ask with the same number and so agree.
int64_t CutAt(const BoundInstance& instance, double cost) {
  if (cost <= 0) return 0;
  if (cost >= Cost(instance)) return instance.iterations;
  if (instance.grain <= 0) return 2 * cost < Cost(instance) ? 0 : instance.iterations;
  const int64_t grains = static_cast<int64_t>(cost / instance.cost_per_iteration / instance.grain + 0.5);
  return std::min(grains * instance.grain, instance.iterations);
}

// The instances stand in a row, each as long as its cost; this runs what lies in [from, to). Fixed
// shares rather than a queue: a thread finds in its cache what it wrote in the launch before.
void RunShare(absl::Span<const BoundInstance> instances, double from, double to) {
  double start = 0;
  for (const BoundInstance& instance : instances) {
    RunRange(instance, CutAt(instance, from - start), CutAt(instance, to - start));
    start += Cost(instance);
  }
}

// A launch whose shares are taken one after the other by the thread that offers it and by those
// that help: the one without a team.
class Offer {
 public:
  void Make(absl::Span<const BoundInstance> instances, double total, std::atomic<uint32_t>* offers) {
    instances_ = instances;
    scratch_bytes_ = ScratchBytes(instances);
    total_ = total;
    shares_ = static_cast<int>(std::min(total / kSerialNanoseconds * 2, 64.0));
    next_.store(0, std::memory_order_relaxed);
    open_.store(true);
    offers->fetch_add(1);
    offers->notify_all();
    TakeShares();
    open_.store(false);
    while (helpers_.load() != 0) std::this_thread::yield();
  }

  bool Help() {
    helpers_.fetch_add(1);
    const bool open = open_.load() && ScratchOfThread().Reserve(scratch_bytes_) && TakeShares();
    helpers_.fetch_sub(1);
    return open;
  }

 private:
  // True if there was one.
  bool TakeShares() {
    bool any = false;
    while (true) {
      const int share = next_.fetch_add(1, std::memory_order_relaxed);
      if (share >= shares_) return any;
      any = true;
      const double from = share == 0 ? -1 : total_ * share / shares_;
      const double to = share + 1 == shares_ ? 2 * total_ + 1 : total_ * (share + 1) / shares_;
      RunShare(instances_, from, to);
    }
  }

  // Constant while it is open or has helpers.
  absl::Span<const BoundInstance> instances_;
  int64_t scratch_bytes_ = 0;
  double total_ = 0;
  int shares_ = 0;

  std::atomic<int> next_{0};
  std::atomic<bool> open_{false};
  std::atomic<int> helpers_{0};
};

Offer& TheOffer() {
  static Offer* const offer = new Offer;
  return *offer;
}

thread_local std::atomic<uint32_t>* offers_of_thread = nullptr;

}  // namespace

void OfferLaunchesOnCpu(std::atomic<uint32_t>* offers) {
  omp_set_num_threads(1);
  offers_of_thread = offers;
}

bool HelpOnCpu() { return TheOffer().Help(); }

absl::Status LaunchOnCpu(absl::Span<const BoundInstance> instances) {
  base::Count(base::Counter::kKernelLaunches);
  const int64_t scratch_bytes = ScratchBytes(instances);
  if (!ScratchOfThread().Reserve(scratch_bytes))
    return absl::ResourceExhaustedError(absl::StrCat("out of memory. Tried to allocate ", scratch_bytes, " bytes"));
  double total = 0;
  for (const BoundInstance& instance : instances) total += Cost(instance);
  if (offers_of_thread != nullptr && total >= kSerialNanoseconds) {
    TheOffer().Make(instances, total, offers_of_thread);
    return absl::OkStatus();
  }
  const int threads = omp_get_max_threads();
  if (threads == 1 || total < kSerialNanoseconds || omp_in_parallel()) {
    for (const BoundInstance& instance : instances) RunRange(instance, 0, instance.iterations);
    return absl::OkStatus();
  }
  std::vector<std::pair<double, double>> left(threads);  // by threads without scratch memory
#pragma omp parallel num_threads(threads)
  {
    // The runtime may give fewer threads than asked for.
    const int team = omp_get_num_threads();
    const int me = omp_get_thread_num();
    const double from = me == 0 ? -1 : total * me / team;
    const double to = me + 1 == team ? 2 * total + 1 : total * (me + 1) / team;
    if (ScratchOfThread().Reserve(scratch_bytes)) {
      RunShare(instances, from, to);
    } else {
      left[me] = {from, to};
    }
  }
  for (const auto& [from, to] : left) {
    if (from < to) RunShare(instances, from, to);
  }
  return absl::OkStatus();
}

}  // namespace torch_lazy::backends
