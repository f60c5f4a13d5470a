// SPDX-License-Identifier: Apache-2.0
// The text of one reduction along a row.
//
// A reduction has 32 accumulators side by side, its lanes, which become vector registers. Sums of
// f32 are f32 within a block and double from block to block, which makes long ones exact at half
// the cost.
#pragma once

#include <string>

#include "codegen/kernels/kernel_text.h"
#include "codegen/kernels/op_text.h"

namespace torch_lazy::codegen {

constexpr int kLanes = 32;
constexpr int kBlock = 4096;  // elements: 128 for each lane

class RowFold {
 public:
  RowFold(int expression, KernelText* text);

  bool wants_blocks() const { return fold_.block_type != fold_.type; }

  // In the order in which they are written; a block is what lies between two of them.
  void Declare();
  void BeginBlock();
  void Step(const std::string& index);  // of lane l: folds in the operand, element `index` of its row
  void EndBlock();
  void Combine();  // the lanes become one number, the reduction's

 private:
  const ir::Node& node() const;
  std::string ArgFunction() const;

  const int expression_;
  KernelText& text_;
  const std::string name_;
  const bool is_index_;  // argmax or argmin
  Fold fold_;            // of the others
  std::string lanes_;    // what a step adds to: the block's, else the accumulators themselves
};

}  // namespace torch_lazy::codegen
