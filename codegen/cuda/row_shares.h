// SPDX-License-Identifier: Apache-2.0
// Sums down the columns of a share of the rows, made by a row kernel.
//
// A block does a share. Its groups of threads take turns at the rows, and each thread owns the
// columns that it walks over: in registers for some rows, then in double in memory, where the
// groups' are added up one after the other.
#pragma once

#include <string>

#include "codegen/kernel_text.h"
#include "codegen/row_stages.h"

namespace torch_lazy::codegen::cuda {

// How a function walks along a row.
struct RowWay {
  bool is_kept = false;  // in registers: kItems vectors of V elements a thread
  int threads = 32;      // of a group, which does a row
  int block_threads = 32;
  int groups() const { return block_threads / threads; }
  bool is_warp() const { return threads == 32; }
};

class RowShares {
 public:
  RowShares(const Body& body, const Loops& loops, const RowWay& way, KernelText* text)
      : body_(body), loops_(loops), way_(way), text_(*text) {}

  // The loop over the rows `r`, of which thread `t` of a group does its part. `folds_rows`: its
  // threads wait for each other.
  void Open(bool folds_rows);
  void Step(const Store& store);  // adds an element up
  void Close(bool folds_rows);

 private:
  template <typename Function>
  void ForEach(Function function);
  template <typename StatementOf>
  void ForEachOwned(StatementOf statement_of);
  template <typename StatementOf>
  void ForEachColumn(const std::string& columns, StatementOf statement_of);
  void AddUp();

  const Body& body_;
  const Loops& loops_;
  const RowWay way_;
  KernelText& text_;
};

}  // namespace torch_lazy::codegen::cuda
