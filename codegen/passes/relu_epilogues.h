// SPDX-License-Identifier: Apache-2.0
// ReLU of a product with a bias becomes part of the product.
//
// cuBLASLt takes max(0, x) of a 16-bit product while it writes it, at no cost; a kernel of ours would read and write
// the result once more. NaN stays NaN there, and rounding keeps signs, so each digit is the same. Products of f32 are
// not `matmul_bias`.
#pragma once

#include "ir/graph.h"

namespace torch_lazy::codegen {

ir::Graph TakeReluIntoMatmuls(const ir::Graph& graph);

}  // namespace torch_lazy::codegen
