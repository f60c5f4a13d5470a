// SPDX-License-Identifier: Apache-2.0
// Numbers that are the same for a whole row.
#pragma once

#include "codegen/cuda/row_function_parts.h"

namespace torch_lazy::codegen::cuda {

class RowInvariants {
 public:
  explicit RowInvariants(const RowFunctionParts& function)
      : function_(function), body_(function.body), threads_(function.threads), text_(function.text) {}

  // Those that are known before the stage's walk; one thread stores them.
  void Define(int stage);

 private:
  void DefineOfOne(int stage);
  void DefineOfSome(int stage);
  void StoreThem(int stage);
  bool MayReplace(const Store& store) const;

  const RowFunctionParts& function_;
  const Body& body_;
  const RowThreads& threads_;
  KernelText& text_;
};

}  // namespace torch_lazy::codegen::cuda
