// SPDX-License-Identifier: Apache-2.0
// The CUDA graphs that there are, and how much memory they hold: a program of many sizes has a plan for each, and wants
// a CUDA graph for each.
//
// They may hold a 32nd of the GPU's memory, 24 of them a quarter, and nine of them what they like: a step that is cut
// early (early_cuts.h) has up to nine, which hold what it keeps for its backward pass. A new CUDA graph takes no room
// that another still uses: a loop over more sizes than there is room for would drop each CUDA graph right before it is
// wanted again. So the one that has been unused for longest goes only when that is four times as long as it ever waited
// between two runs; else the new one is not captured. Time is counted in runs of plans that could have CUDA graphs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>

#include "absl/container/flat_hash_map.h"

namespace torch_lazy::lazy {

// A plan that may have a CUDA graph; of one that runs on several sets of addresses in turn, one of these turns.
class CudaGraphOwner {
 public:
  virtual ~CudaGraphOwner() = default;
  // Lets go of the CUDA graph for others' sake. False if it is running.
  virtual bool TryDrop() = 0;
};

class KeptCudaGraphs {
 public:
  explicit KeptCudaGraphs(size_t most_bytes) : most_bytes_(most_bytes) {}
  // Of this process; to be asked for where the eager device is known.
  static KeptCudaGraphs& Get();

  // The plan has a CUDA graph of so many bytes from now on, and will use it. False: there is no room.
  bool TryAdd(CudaGraphOwner* plan, size_t size_bytes, int64_t now);
  // The plan, which has a CUDA graph, uses it.
  void Use(CudaGraphOwner* plan, int64_t now);
  // It has none any more, if it ever had.
  void Remove(CudaGraphOwner* plan);
  // How many have been added so far.
  int64_t num_added() const { return num_added_.load(std::memory_order_relaxed); }

 private:
  struct Kept {
    CudaGraphOwner* plan;
    size_t size_bytes;
    int64_t used;          // when it was used last
    int64_t longest_wait;  // between two uses
  };
  bool TryDropOldest(int64_t now);

  const size_t most_bytes_;
  std::mutex lock_;
  std::list<Kept> list_;  // what was used last in front
  size_t size_bytes_ = 0;
  std::atomic<int64_t> num_added_{0};
  absl::flat_hash_map<CudaGraphOwner*, std::list<Kept>::iterator> places_;
};

}  // namespace torch_lazy::lazy
