// SPDX-License-Identifier: Apache-2.0
// The text of one reduction: a thread's accumulator, and how those of several threads are combined.
//
// A thread's sum of f32 is f32 within a block of its numbers and double from block to block, as on
// the CPU. Threads combine theirs in an order that sizes alone decide: by halves, so that f32 will do
// for sums of one block each.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/kernels/kernel_text.h"
#include "codegen/kernels/op_text.h"

namespace torch_lazy::codegen::cuda {

constexpr int kBlockSteps = 64;  // numbers of a thread in a block

inline bool HasIndex(const ir::Node& reduction) {
  return reduction.op == ir::Op::kArgMax || reduction.op == ir::Op::kArgMin;
}

class Accumulator {
 public:
  // Of so many rows at once: all but Declare() and DefineResult() stand in a loop over `row` then.
  // `is_one_block`: a thread's numbers are one block, and the sum of all threads' stays f32, too.
  Accumulator(int expression, KernelText* text, int rows = 1, bool is_one_block = false);

  // In the order in which they are written.
  void Declare();
  void BeginBlock();
  void Step(const std::string& index,
            const std::string& in);  // the operand, element `index`, if `in` (empty: in any case)
  void EndBlock();

  // Folds another thread's into this thread's: from the lane `distance` further, or from memory.
  void FoldFromLane(const std::string& distance);
  void FoldFrom(const std::string& memory);  // an index, of the arrays declared by DeclareShared
  void TakeLane0(int lanes);                 // the first of so many

  void DeclareShared(const std::string& size);
  void Put(const std::string& place);   // into the shared arrays
  void Take(const std::string& place);  // from there

  void DefineResult();

 private:
  const ir::Node& node() const;
  std::string ProductAdded() const;
  std::string Combined(const std::string& other, const std::string& other_at) const;  // a statement

  const int expression_;
  KernelText& text_;
  const int rows_;
  const std::string name_, value_, index_;  // the last two of a row
  const bool is_index_;                     // argmax or argmin
  Fold fold_;                               // of the others
  std::string type_, block_type_;           // in registers, such as lanes can exchange
  std::string step_to_;
  bool in_block_ = false;
};

// The accumulators of a group, lanes side by side or the whole block with `t` its thread, become one number
// each, which all its threads get. Blocks that are open end where a warp's are one. The same for
// each of `rows` at once.
void CombineGroup(std::vector<Accumulator>& accumulators, int threads, KernelText* text, int rows = 1);

// The first of so many lanes side by side, a power of two, gets what all of them have.
void CombineLanes(std::vector<Accumulator>& accumulators, int lanes, KernelText* text, int rows = 1);

// A loop over `row` around what is written within; nothing but that where there is one row.
void ForEachRow(int rows, KernelText* text, const std::function<void()>& write);

}  // namespace torch_lazy::codegen::cuda
