// SPDX-License-Identifier: Apache-2.0
// Operators that autograd meets whole here, and in parts on the CPU.
//
// Autograd's formula for the whole knows less than those of the parts: `linear` refuses complex numbers, neither it nor its
// backward nor the GRU cell has a derivative in forward mode, and the second derivative of `linear` rounds otherwise. And
// Python's dispatch modes and tensor subclasses count or replace the parts. There they are taken apart, as by eager always.
#pragma once

#include <torch/library.h>

#include "lazy/op.h"

namespace torch_lazy::device {

using NeedsParts = bool (*)(const at::Tensor& argument);

// Complex, with a tangent, or of a class with its own dispatch.
bool IsOutOfTheOrdinary(const at::Tensor& argument);

// Registers, in the library of `aten` at AutogradPrivateUse1, the choice between autograd's kernel of the operator and
// `parts`, which says the operator by others. Called after the operator has its kernel at PrivateUse1.
void RegisterWholeOrParts(torch::Library& aten, const char* name, lazy::Runner parts,
                          NeedsParts needs_parts = IsOutOfTheOrdinary);

}  // namespace torch_lazy::device
