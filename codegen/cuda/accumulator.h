// SPDX-License-Identifier: Apache-2.0
// The text of one reduction: a thread's accumulator, and how those of several threads are combined.
//
// A thread's sum of f32 is f32 within a block of its numbers and double from block to block, as on
// the CPU. Threads combine theirs in an order that sizes alone decide.
#pragma once

#include <string>
#include <vector>

#include "codegen/kernel_text.h"
#include "codegen/op_text.h"

namespace torch_lazy::codegen::cuda {

constexpr int kBlockSteps = 64;  // numbers of a thread in a block

class Accumulator {
 public:
  Accumulator(int expression, KernelText* text);

  // In the order in which they are written.
  void Declare();
  void BeginBlock();
  void Step(const std::string& index,
            const std::string& in);  // the operand, element `index`, if `in` (empty: in any case)
  void EndBlock();

  // Folds another thread's into this thread's: from the lane `distance` further, or from memory.
  void FoldFromLane(const std::string& distance);
  void FoldFrom(const std::string& memory);  // an index, of the arrays declared by DeclareShared
  void TakeLane0();

  void DeclareShared(const std::string& size);
  void Put(const std::string& place);   // into the shared arrays
  void Take(const std::string& place);  // from there

  void DefineResult();

 private:
  const ir::Node& node() const;
  std::string Combined(const std::string& other, const std::string& other_at) const;  // a statement

  const int expression_;
  KernelText& text_;
  const std::string name_;
  const bool is_index_;            // argmax or argmin
  Fold fold_;                      // of the others
  std::string type_, block_type_;  // in registers, such as lanes can exchange
  std::string step_to_;
  bool in_block_ = false;
};

// The accumulators of a group, a warp or the whole block with `t` its thread, become one number
// each, which all its threads get. Blocks that are open end where a warp's are one.
void CombineGroup(std::vector<Accumulator>& accumulators, int threads, KernelText* text);

}  // namespace torch_lazy::codegen::cuda
