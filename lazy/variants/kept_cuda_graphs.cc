// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/kept_cuda_graphs.h"

#include <algorithm>

#include "lazy/eager/eager_device.h"

namespace torch_lazy::lazy {
namespace {

constexpr size_t kFewCudaGraphs = 9;    // that there is room for, whatever they hold
constexpr size_t kSomeCudaGraphs = 24;  // that there is room for while they hold a quarter of the memory
constexpr size_t kTimesForSome = 8;     // a quarter is so many times a 32nd
constexpr int64_t kShortestWait = 256;  // what waits less may wait longer another time
constexpr int64_t kTimesAsLong = 4;
constexpr size_t kOfHost = 128 << 20;  // bytes, where CUDA graphs are emulated

size_t MostBytes() {
  constexpr size_t kShare = 32;
  return GpuAllocator() == nullptr ? kOfHost : GpuAllocator()->getMemoryInfo(EagerDevice().index()).second / kShare;
}

}  // namespace

KeptCudaGraphs& KeptCudaGraphs::Get() {
  static KeptCudaGraphs* const kept = new KeptCudaGraphs(MostBytes());
  return *kept;
}

bool KeptCudaGraphs::TryDropOldest(int64_t now) {
  const Kept& oldest = list_.back();  // alive: it removes itself, and waits for the lock
  if (now - oldest.used <= kTimesAsLong * std::max(oldest.longest_wait, kShortestWait) || !oldest.plan->TryDrop())
    return false;
  size_bytes_ -= oldest.size_bytes;
  places_.erase(oldest.plan);
  list_.pop_back();
  return true;
}

bool KeptCudaGraphs::TryAdd(CudaGraphOwner* plan, size_t size_bytes, int64_t now) {
  const std::lock_guard<std::mutex> lock(lock_);
  while (list_.size() >= kFewCudaGraphs &&
         size_bytes_ + size_bytes > most_bytes_ * (list_.size() < kSomeCudaGraphs ? kTimesForSome : 1)) {
    if (!TryDropOldest(now)) return false;
  }
  places_[plan] = list_.insert(list_.begin(), {plan, size_bytes, now, 0});
  size_bytes_ += size_bytes;
  num_added_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void KeptCudaGraphs::Use(CudaGraphOwner* plan, int64_t now) {
  const std::lock_guard<std::mutex> lock(lock_);
  const auto place = places_.find(plan);
  if (place == places_.end()) return;
  Kept& kept = *place->second;
  kept.longest_wait = std::max(kept.longest_wait, now - kept.used);
  kept.used = now;
  list_.splice(list_.begin(), list_, place->second);
}

void KeptCudaGraphs::Remove(CudaGraphOwner* plan) {
  const std::lock_guard<std::mutex> lock(lock_);
  const auto place = places_.find(plan);
  if (place == places_.end()) return;
  size_bytes_ -= place->second->size_bytes;
  list_.erase(place->second);
  places_.erase(place);
}

}  // namespace torch_lazy::lazy
