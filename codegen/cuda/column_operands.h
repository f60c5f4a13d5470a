// SPDX-License-Identifier: Apache-2.0
// Numbers that all rows share (a norm's weight and bias): a thread that does several rows reads its own once, into
// registers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codegen/cuda/row_threads.h"

namespace torch_lazy::codegen::cuda {

class ColumnOperands {
 public:
  // `loads`: of whole vectors.
  ColumnOperands(const Body& body, const Loops& loops, const RowThreads& threads, std::vector<int> loads,
                 KernelText* text)
      : body_(body), loops_(loops), threads_(threads), loads_(std::move(loads)), text_(*text) {}

  void Read(const std::string& row);  // any of the group's
  bool Keeps(int number) const;
  std::string Vector(int number) const;  // V elements, of `item`

 private:
  const Body& body_;
  const Loops& loops_;
  const RowThreads threads_;
  const std::vector<int> loads_;
  KernelText& text_;
};

}  // namespace torch_lazy::codegen::cuda
