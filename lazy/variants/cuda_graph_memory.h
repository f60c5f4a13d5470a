// SPDX-License-Identifier: Apache-2.0
// What a CUDA graph reads and writes: a plan's parameters, and what its replays leave in storages.
//
// A parameter that stays at one address is read and written there; one whose address goes on changing is copied to a
// home that the CUDA graph keeps, and back if it is written. A result lies in a home of its own (graph_result.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <c10/core/Storage.h>

#include "lazy/cuda/graph_result.h"
#include "lazy/run/bound_plan.h"
#include "lazy/run/plan_memory.h"
#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {

// True if an output takes another parameter's memory, which no CUDA graph can do.
bool TakesAnothersMemory(const BoundPlan& plan);

class CudaGraphMemory {
 public:
  struct Param {
    int32_t buffer, slot;
    bool is_written, is_read;
    const void* address = nullptr;  // in the run before, or as captured; null: without memory
    int stayed = 0;                 // runs since it was elsewhere
    int moved = 0;                  // how often since the first capture
    bool moves = false;             // its address goes on changing
    bool is_lent = false;           // it lay in a home
    c10::Storage home = {};         // where the CUDA graph reads one that moves
    // The memory that PyTorch's allocator was told of last. No other has its place meanwhile.
    const c10::StorageImpl* told = nullptr;
    c10::weak_intrusive_ptr<c10::StorageImpl> told_place{c10::intrusive_ptr<c10::StorageImpl>()};
    const void* told_address = nullptr;
  };

  // `newest`: the number of the youngest storage that runs of the plan have read.
  CudaGraphMemory(const BoundPlan& plan, std::atomic<uint64_t>* newest);

  const std::vector<Param>& params() const { return params_; }
  // Notes which parameters move. Returns why there can be no CUDA graph, or null.
  const char* NoteAddresses(Trace* trace, bool was_captured);
  // Before the first capture: what has not stayed moves, but for what another CUDA graph has just left in its home.
  void ChooseMoving();
  // True if the addresses are those of the capture, or of the run before.
  bool Fits(Trace* trace) const;
  // How many parameters are elsewhere, of those that tell other addresses from the same ones, some of which have moved.
  // What lies in a home tells, and what was there before the plan ran last.
  struct Distance {
    size_t away = 0, tell = 0;
  };
  Distance DistanceTo(Trace* trace) const;
  // It has served for long: what moved before that no longer counts.
  void ForgetMoves();
  bool CopiesLittle() const;
  bool CopiesMuch() const;  // of what the plan reads and writes
  // What a CUDA graph holds: homes at most, arguments of launches, and what CUDA keeps.
  size_t SizeBytes() const;
  // All that outlives a replay stays where it is from now on, and was before if it has a home; the rest is shared with
  // other CUDA graphs.
  void Fix(PlanMemory* memory);
  // Results alone, of a run without the CUDA graph that leaves them where that would.
  void FixResults(PlanMemory* memory);

  // The contents of the parameters' slots; and the way back, after calls have taken the slots for their operands.
  std::vector<c10::Storage> Contents(Trace* trace) const;
  void PutBack(std::vector<c10::Storage> contents, Trace* trace) const;

  // True if replays write nothing but results in homes, which they may do on a lane: Note [Lanes].
  bool WritesResultsAlone() const;
  // True if this trace's parameters were made on the lane, or by the main stream.
  bool MayRunOn(int lane, Trace* trace) const;
  // Tells PyTorch's allocator what a replay of this trace uses on the lane; and what all replays do.
  void TellOfParams(int lane, Trace* trace);
  void TellOfHomes(int lane) const;

  // Before a replay: results that somebody still holds move out, then parameters that move are copied.
  bool HoldsResults() const;
  void VacateResults();
  void CopyIn(Trace* trace);
  // After it: written parameters are copied back, and the trace's slots have the results, as made on the lane.
  void TakeOut(Trace* trace, int lane);
  // The same of results alone.
  void LendResults(Trace* trace, int lane);

  void DropResults();
  void DropHomes();

 private:
  struct Result {
    int32_t slot, buffer;
    std::unique_ptr<CudaGraphResult> home;  // null: a parameter written in place
  };
  static bool IsFilled(const Param& param, const Trace& trace);
  bool IsYoung(const Param& param, const Trace& trace) const;
  bool IsInOwnHome(const Param& param) const;
  void NoteAge(const Param& param, const Trace& trace);

  const BoundPlan& plan_;
  std::atomic<uint64_t>& newest_;
  std::vector<Param> params_;
  std::vector<Result> results_;
  bool has_addresses_ = false;
};

}  // namespace torch_lazy::lazy
