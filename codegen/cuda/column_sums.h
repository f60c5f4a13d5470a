// SPDX-License-Identifier: Apache-2.0
// Sums down the columns of a share of the rows, made by a row kernel.
//
// A block does a share. Its groups of threads take turns at the rows, and each thread owns the
// columns that it walks over: in registers for some rows, then in double in memory, to which the
// groups' are added in their order.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "codegen/cuda/row_threads.h"
#include "codegen/kernels/kernel_text.h"
#include "codegen/kernels/row_stages.h"

namespace torch_lazy::codegen::cuda {

class ColumnSums {
 public:
  ColumnSums(const Body& body, const Loops& loops, const RowThreads& threads, KernelText* text)
      : body_(body), loops_(loops), threads_(threads), text_(*text) {}

  void Begin();
  // The loop over the rows `r`, of which thread `t` of a group does its part.
  void Open();
  void PlaceRow();                // where rows are done at once: `r`, and whether it `is_row`, of the share
  void Step(const Store& store);  // adds an element up
  void Close(bool folds_rows);    // `folds_rows`: a group's threads wait for each other

 private:
  template <typename Function>
  void ForEach(Function function);
  template <typename StatementOf>
  void ForEachOwned(const std::vector<Store>& stores, StatementOf statement_of);
  template <typename StatementOf>
  void ForEachSum(StatementOf statement_of);
  template <typename StatementOf>
  void ForEachColumn(const std::string& columns, StatementOf statement_of);
  void AddUp();
  int parts() const { return threads_.per_block / std::max(threads_.per_row, 32); }
  void AddUpOwned();
  void AddUpWarp();
  std::string RowText(const std::string& first) const;

  const Body& body_;
  const Loops& loops_;
  const RowThreads threads_;
  KernelText& text_;
};

}  // namespace torch_lazy::codegen::cuda
