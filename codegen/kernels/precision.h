// SPDX-License-Identifier: Apache-2.0
// How exactly a kernel's numbers are needed, for which a GPU has functions of a few instructions.
//
// What lowers an op on 16-bit floats computes in f32, and rounds the result: functions on the way
// there need not be right to the last of 24 bits. Nor need the terms of a softmax's sum, which err
// the less the more they count.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/kernels/body.h"

namespace torch_lazy::codegen {

// In the end the number is: as computed; rounded to f16 or better, or such a term; rounded to bf16.
enum class Precision : uint8_t { kFull, kHalf, kBF16 };

// Of each expression.
std::vector<Precision> PrecisionsOf(const ir::Graph& graph, const Body& body);

// The expression that is erf in this one, 1 + erf, if it serves nothing else; -1 if there is none.
int ErfOfComplement(const ir::Graph& graph, const Body& body, int expression);

}  // namespace torch_lazy::codegen
