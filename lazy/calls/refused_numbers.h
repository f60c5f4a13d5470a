// SPDX-License-Identifier: Apache-2.0
// Numbers that eager may refuse for their value.
//
// 300 does not fit uint8, and integers are not divided by 0. Eager says so at the call, so a call with such a number
// runs at once. Where ATen would have taken it, that is slow but right.
#pragma once

#include <algorithm>
#include <cmath>

#include <c10/core/ScalarTypeToTypeMeta.h>
#include <c10/util/ArrayRef.h>

#include "lazy/calls/describer.h"
#include "lazy/ops/op.h"

namespace torch_lazy::lazy {

// True if no value of the number can make eager refuse the call with these tensors. `number`: as in CallNumber.
bool IsAccepted(const c10::IValue& number, const Op& op, c10::ArrayRef<CallOperand> operands);

// No floating type refuses a number that the smallest of them holds, and most numbers and tensors are such.
inline bool IsModest(double number) {
  constexpr double kLargestHalf = 65504;
  return std::abs(number) <= kLargestHalf;
}
inline bool AreFloating(c10::ArrayRef<CallOperand> operands) {
  return std::all_of(operands.begin(), operands.end(), [](const CallOperand& operand) {
    return c10::isFloatingType(c10::typeMetaToScalarType(operand.tensor->dtype()));
  });
}

}  // namespace torch_lazy::lazy
