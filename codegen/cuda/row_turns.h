// SPDX-License-Identifier: Apache-2.0
// A block that does one long row after the other: while it computes one, the next is copied into
// shared memory, by the threads that will read it. Blocks take rows in turn, so that all work side
// by side in memory.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "codegen/cuda/row_way.h"

namespace torch_lazy::codegen::cuda {

class RowTurns {
 public:
  // `loads`: of whole vectors, which the first walk reads; none if rows are walked over again and again.
  RowTurns(const Body& body, const Loops& loops, const RowWay& way, int turns, std::vector<int> loads, KernelText* text)
      : body_(body), loops_(loops), way_(way), turns_(turns), loads_(std::move(loads)), text_(*text) {}

  void Open();       // the loop over rows `r`, from `first_r` on
  void FetchNext();  // when all of the row has been read
  void Close(int num_folds);  // in which all threads meet

  bool Fetches(int number) const { return std::find(loads_.begin(), loads_.end(), number) != loads_.end(); }
  std::string Place(int number) const;  // of V elements of `item`

 private:
  std::string TypeOf(int number) const;

  const Body& body_;
  const Loops& loops_;
  const RowWay way_;
  const int turns_;
  const std::vector<int> loads_;
  KernelText& text_;
};

}  // namespace torch_lazy::codegen::cuda
