// SPDX-License-Identifier: Apache-2.0
// Operands of attention in memory: views that only stride are no work.
#pragma once

#include <vector>

#include "codegen/layout/matrix.h"

namespace torch_lazy::codegen {

struct Attention {
  std::vector<Matrix> operands;  // query, keys, values, and the bias if there is one; four strides each
  Matrix result;
  Monomial batch, heads, rows, length, width;  // rows: queries of a head
};

// Of an attend node. Operands go through views down to the value that has to be stored, as long as each dim has one
// stride.
Attention AttentionOf(const ir::Graph& graph, const Concats& concats, const Factors& factors, ir::Value attend);

}  // namespace torch_lazy::codegen
