// SPDX-License-Identifier: Apache-2.0
// A block that does one long row after the other: while it computes one, the next is copied into
// shared memory, by one instruction of one thread where the machine has it (PTX: cp.async.bulk),
// else by the threads that will read it. Blocks take rows in turn, so that all work side by side
// in memory.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/cuda/row_threads.h"

namespace torch_lazy::codegen::cuda {

class RowPipeline {
 public:
  // `loads`: of whole vectors, which the first walk reads; none if rows are walked over again and again.
  RowPipeline(const Body& body, const Loops& loops, const RowThreads& threads, int width, int turns,
              std::vector<int> loads, KernelText* text)
      : body_(body),
        loops_(loops),
        threads_(threads),
        width_(width),
        turns_(turns),
        loads_(std::move(loads)),
        text_(*text) {}

  void Begin();                   // fetches row `first_r`
  void Open();                    // the loop over rows `r`, from there on
  void FetchNext(bool have_met);  // when the thread, or all that have met, have read all of the row
  void Close(int num_folds);      // in which all threads meet

  bool Fetches(int number) const { return std::find(loads_.begin(), loads_.end(), number) != loads_.end(); }
  std::string Place(int number) const;  // of V elements of `item`

 private:
  std::string TypeOf(int number) const;
  std::string Ahead(int number) const { return absl::StrCat("ahead", body_.expressions[number].address); }
  bool MayBeBulk() const;
  void FetchInBulk();

  const Body& body_;
  const Loops& loops_;
  const RowThreads threads_;
  const int width_, turns_;
  const std::vector<int> loads_;
  KernelText& text_;
};

}  // namespace torch_lazy::codegen::cuda
