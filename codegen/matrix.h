// SPDX-License-Identifier: Apache-2.0
// Operands and results of matmuls in memory: views that only stride are no work.
#pragma once

#include "codegen/concats.h"
#include "codegen/factors.h"
#include "codegen/polynomial.h"

namespace torch_lazy::codegen {

// A matrix, or a batch of them, in the memory where `base` lies.
struct Matrix {
  ir::Value base = ir::kNoValue;
  Polynomial offset;                                 // elements
  absl::InlinedVector<Polynomial, 3> strides;        // per dim
};

// Goes through views down to the value that has to be stored, as long as each dim has one stride,
// and that of rows or of columns is 1, as libraries want it; the operand itself otherwise.
Matrix MatrixOf(const ir::Graph& graph, const Concats& concats, const Factors& factors,
                ir::Value operand);

// `value` itself, where it lies.
Matrix MatrixAt(const ir::Graph& graph, const Concats& concats, const Factors& factors,
                ir::Value value);

}  // namespace torch_lazy::codegen
