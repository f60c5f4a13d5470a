// SPDX-License-Identifier: Apache-2.0
// Operators that autograd meets whole here, and in parts on the CPU.
//
// Autograd's formula for the whole knows less than those of the parts: `linear` refuses complex numbers and knows one
// rank of weight and bias, neither it nor its backward nor the GRU cell has a derivative in forward mode, and the
// second derivative of `linear` rounds otherwise. And Python's dispatch modes and tensor subclasses count or replace
// the parts. There they are taken apart, as by eager always.
#pragma once

#include <algorithm>

#include <torch/library.h>

#include "lazy/ops/op.h"

namespace torch_lazy::device {

using Arguments = c10::ArrayRef<c10::IValue>;
using NeedsParts = bool (*)(Arguments arguments);

// Some tensor is complex, has a tangent, or is of a class with its own dispatch.
bool IsOutOfTheOrdinary(Arguments arguments);

// Whether `is_so` is true of some tensor among the arguments.
template <class Predicate>
bool AnyTensor(Arguments arguments, Predicate is_so) {
  return std::any_of(arguments.begin(), arguments.end(), [&](const c10::IValue& argument) {
    return argument.isTensor() && argument.toTensor().defined() && is_so(argument.toTensor());
  });
}

// Registers, in the library of `aten` at AutogradPrivateUse1, the choice between autograd's kernel of the operator and
// `parts`, which says the operator by others. Called after the operator has its kernel at PrivateUse1.
void RegisterWholeOrParts(torch::Library& aten, const char* name, lazy::Runner parts,
                          NeedsParts needs_parts = IsOutOfTheOrdinary);

}  // namespace torch_lazy::device
