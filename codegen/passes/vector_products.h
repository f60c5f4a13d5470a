// SPDX-License-Identifier: Apache-2.0
// A product of a vector and a matrix becomes sums along the matrix's rows.
//
// Decoding one token multiplies one row by each weight. Such a product reads every element of the weight once, so
// memory bounds it. A row kernel of ours reads as fast as a library's product. Several weights that are read with the
// same vector share a kernel, and a bias, an activation or a residual costs no launch. An example, with a weight as
// nn.Linear keeps it:
//
//   y[1, n] = matmul(x[1, k], permute(w[n, k]))   becomes   y[n] = sum over k of w[n, k] * x[k]
//
// The sum is f32 or wider, and rounded once, as a library's is. The matrix's rows must lie along the sum: else ATen's
// product stays.
#pragma once

#include "ir/graph.h"

namespace torch_lazy::codegen {

// For GPUs.
ir::Graph SumVectorProducts(const ir::Graph& graph);

}  // namespace torch_lazy::codegen
