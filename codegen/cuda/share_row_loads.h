// SPDX-License-Identifier: Apache-2.0
// Reading the rows of a share that a group does at once.
//
// Where a block does one row after the other and shared memory suffices, a step's rows are copied
// there while the step before is computed, by the threads that will read them: nothing waits for
// memory but the first step, and for nobody.
#pragma once

#include <string>
#include <vector>

#include "codegen/cuda/column_sums.h"

namespace torch_lazy::codegen::cuda {

class ShareRowLoads {
 public:
  // `reads`: the loads of the rows' own vectors, stage by stage. `fetches`: ahead, into shared memory.
  ShareRowLoads(const Body& body, const Loops& loops, const RowThreads& threads, ColumnSums* shares,
                std::vector<std::vector<int>> reads, bool fetches, KernelText* text);

  void Begin();          // before the loop over rows
  void BeginStep();      // of the rows done at once
  void Read(int stage);  // all of the step's, before anything is written: to a compiler that may be what is read next
  std::string Vector(int number) const;  // V elements, of `row` and `item`

 private:
  std::string TypeOf(int number) const;
  std::string PlaceInRow(int number) const;  // of what has been fetched
  template <typename Function>
  void ForEachRead(Function write);
  template <typename Function>
  void ForEachPlacedRow(Function write);

  const Body& body_;
  const Loops& loops_;
  const RowThreads threads_;
  ColumnSums& shares_;
  const std::vector<std::vector<int>> reads_;
  const bool fetches_;
  KernelText& text_;
};

}  // namespace torch_lazy::codegen::cuda
