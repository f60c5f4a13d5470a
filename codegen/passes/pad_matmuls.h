// SPDX-License-Identifier: Apache-2.0
// Large products of 16-bit floats get extents that libraries like.
//
// On a GPU a product whose matrices have rows of an odd length (a vocabulary of 30522 words) runs at a fraction of the
// speed. The length is made a multiple of 8 by zeros beside the operands, and what they add to the result is not looked
// at. Kernels of ours write operands into their place between the zeros, and read results where they lie, so that
// nothing is copied for it. The extent may be a symbol: then its multiple is a symbol of the plan's own, and right for
// every number.
#pragma once

#include "ir/passes/pass.h"

namespace torch_lazy::codegen {

// For GPUs. The symbols' numbers are added to the sizes seen first.
ir::Graph PadMatmuls(const ir::Graph& graph, ir::PassContext* context);

}  // namespace torch_lazy::codegen
