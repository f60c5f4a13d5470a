// SPDX-License-Identifier: Apache-2.0
// A stage's walk along the row: what each thread does of it, with vectors in registers, or step by step.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "codegen/cuda/accumulator.h"
#include "codegen/cuda/row_function_parts.h"
#include "codegen/kernels/row_stages.h"

namespace torch_lazy::codegen::cuda {

class RowStageText {
 public:
  explicit RowStageText(const RowFunctionParts& function)
      : function_(function),
        body_(function.body),
        loops_(function.loops),
        threads_(function.threads),
        text_(function.text) {}

  // In the order of the stages, of which this is number `number`. Folds are declared, and not combined.
  void Emit(int number, const RowStage& stage, std::vector<Accumulator>& folds);

 private:
  void EmitKept(int number, const RowStage& stage, std::vector<Accumulator>& folds);
  void EmitSteps(const RowStage& stage, std::vector<Accumulator>& folds);
  void OpenWalk(const std::string& at, const std::string& count, int block_steps, int unroll,
                std::vector<Accumulator>& folds);
  void CloseWalk(std::vector<Accumulator>& folds);
  void EmitVector(const RowStage& stage, std::vector<Accumulator>& folds);
  void Step(const RowStage& stage, std::vector<Accumulator>& folds, absl::Span<const KernelText::Along> along);
  void StepShares(const RowStage& stage);
  void Write(const Store& store, absl::Span<const KernelText::Along> at, absl::Span<const KernelText::Along> along);

  std::string SourceOf(int number, absl::Span<const KernelText::Along> along);
  std::string Kept(int number) const;
  std::string TypeOf(int address) const;
  void Declare(int address);
  bool IsVector(int number) const;
  bool IsDrawn(int number) const;
  bool IsIotaEqualsRow(int number) const;

  const RowFunctionParts& function_;
  const Body& body_;
  const Loops& loops_;
  const RowThreads& threads_;
  KernelText& text_;
  bool is_vector_ = false;              // are elements `k` of vectors being done?
  absl::flat_hash_set<int> available_;  // what earlier stages have kept
};

}  // namespace torch_lazy::codegen::cuda
