// SPDX-License-Identifier: Apache-2.0
// Operands and results of matmuls in memory: views that only stride are no work.
#pragma once

#include <optional>

#include "codegen/layout/concats.h"
#include "codegen/layout/factors.h"
#include "codegen/plan/polynomial.h"

namespace torch_lazy::codegen {

// A matrix, or a batch of them, or a vector, or an array of more dims, in the memory where `base` lies.
struct Matrix {
  ir::Value base = ir::kNoValue;
  Polynomial offset;                           // elements
  absl::InlinedVector<Polynomial, 3> strides;  // per dim
};

// The operand of a kernel that reads each dim with one stride, whatever that is: as ProductOfMatrices has it.
Matrix StridedOperand(const ir::Graph& graph, const Concats& concats, const Factors& factors, ir::Value operand);

// `value` itself, where it lies.
Matrix MatrixAt(const ir::Graph& graph, const Concats& concats, const Factors& factors, ir::Value value);

// Two of them and their product, or of each batch, or the sum of those.
struct Product {
  Matrix x, y, result;
  std::optional<Matrix> bias;   // a vector, added to each row
  std::vector<Monomial> sizes;  // batches if there are any, rows, inner, columns
  bool sums = false;            // over the batches
  bool is_relu = false;         // max(0, that)
};

// Of a matmul node. Operands go through views down to the value that has to be stored, as long as
// each dim has one stride, and that of rows or of columns is 1, as libraries want it; a bias's is.
// Batches that follow each other in memory like rows, or like what is summed over, become that.
Product ProductOfMatrices(const ir::Graph& graph, const Concats& concats, const Factors& factors, ir::Value matmul);

}  // namespace torch_lazy::codegen
