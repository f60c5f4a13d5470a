// SPDX-License-Identifier: Apache-2.0
// A bound plan as CUDA graphs, one for each set of addresses that it runs on in turn.
//
// Note [CUDA graphs]
// A plan runs by single launches until it is worth a CUDA graph (cuda_graph_choice.h) and there is room for one
// (kept_cuda_graphs.h), in a loop twice. Then a run is captured, and it and all later ones are one call. A CUDA graph
// reads and writes fixed addresses (cuda_graph_memory.h):
// - a parameter that was at one address in the last three runs (weights, an optimizer's state) is read and written
//   there, and is asked for its address at each replay. Where one has moved, the plan is captured anew. One that moved
//   right before the first capture, or often, is copied to a home that the CUDA graph keeps, and back if it is written;
//   with as many copies as steps there is no CUDA graph;
// - a result lies in a home (graph_result.h), and so does what fills a storage without memory. A replay moves what is
//   still there elsewhere, which only the thread may do that uses it;
// - numbers, and the tables of launches of many kernels, lie in memory that the CUDA graph's kernels read;
// - random numbers are those of a seed and an offset (philox.h), which a replay sets for the whole CUDA graph.
// What cannot be captured (a call that waits, numbers among the arguments of ATen's calls that change) goes on by
// single launches.
//
// Two models of one architecture, layers that are waited for, and threads that share a model run one plan in turn. The
// runs of one thread on one set of addresses are a *turn* (cuda_graph_turn.h), with homes and a CUDA graph of its own.
// A turn is captured at its own third run, so what does not come back is not captured, and by the thread that launched
// it before: a library makes no handle for a new thread in a capture. A run finds its turn:
// - the one whose addresses it has; the one that came next the last time is asked first;
// - else the nearest of its thread's, in which something has moved;
// - or a new one, if most of what tells is elsewhere. Storages tell that were made before some that the plan has read
//   already, as another model's weights were. A new input or gradient says nothing, nor do new weights: they take the
//   place of the expected turn's.
// Where 64 runs in a row were on new addresses, these do not come back: what moves is copied from then on.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "lazy/cuda/graphs.h"
#include "lazy/run/bound_plan.h"
#include "lazy/trace/trace.h"
#include "lazy/variants/cuda_graph_turn.h"

namespace torch_lazy::lazy {

class CudaGraphPlan {
 public:
  // Null where there are no CUDA graphs, or the plan can have none.
  static std::unique_ptr<CudaGraphPlan> For(const BoundPlan& plan);

  // As BoundPlan::Run.
  bool Run(Trace* trace);
  // True if the run before was a CUDA graph's.
  bool replays() const { return replays_.load(std::memory_order_relaxed); }
  // As Runnable says.
  bool WouldReplay(Trace* trace) const;
  // Something else runs in the plan's place: lets go of what is not running. Later runs may capture anew.
  void LetGo();

 private:
  struct Turn {
    std::shared_ptr<CudaGraphTurn> graph;
    int64_t used;             // when it ran last, in runs of the plan
    int64_t longest_absence;  // between two of these
    size_t next;              // the thread's turn that came after it the last time
  };
  CudaGraphPlan(const BoundPlan& plan, const CudaGraphs& graphs) : plan_(plan), graphs_(graphs) {}
  void NoteThread();
  // True once several threads have run it by turns: Note [Lanes].
  bool is_shared() const;
  std::shared_ptr<CudaGraphTurn> TurnOf(Trace* trace);
  std::optional<size_t> LastOfThisThread() const;
  std::optional<size_t> FindTurn(size_t expected, Trace* trace) const;
  std::optional<size_t> AddTurn();
  bool IsUnused(const Turn& turn) const;
  void RetireUnused();
  void Refuse();

  const BoundPlan& plan_;
  const CudaGraphs& graphs_;
  std::atomic<bool> refused_{false}, replays_{false};
  std::atomic<uint64_t> newest_{0};  // of the storages that it has read, the number of the one made last
  std::atomic<int> handed_on_{0};    // runs by another thread than the one before; not counted to the end
  mutable std::mutex mutex_;         // over what follows
  std::thread::id last_thread_;
  std::vector<Turn> turns_;
  int64_t runs_ = 0;
  size_t strangers_ = 0;      // turns in a row that were new
  bool is_one_turn_ = false;  // addresses do not come back: what has moved goes on moving
};

}  // namespace torch_lazy::lazy
