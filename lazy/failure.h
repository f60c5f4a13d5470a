// SPDX-License-Identifier: Apache-2.0
// Which operators may refuse values when they run.
//
// Note [Failing calls]
// An error that depends on values is raised when the trace runs. Then storages must hold what they held before the call
// that fails, as if the program had stopped there. The interpreter runs calls in the program's order, so this is what it
// leaves. A plan runs them in another: it first copies each storage that it overwrites before a call that may fail, and
// puts the copies back when one does; the interpreter then finds the first call of the program that fails. What the
// program made after it never gets a value: its storages stay with the failed trace, which says so to whoever reads them.
#pragma once

#include <cstdint>

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/ScalarType.h>

namespace torch_lazy::lazy {

// False only for operators that take all values of the shapes and dtypes they take.
bool MayFail(const c10::OperatorHandle& handle);

// Numbers that an operator refuses as arguments, which is an error of the call itself.
enum RefusedNumbers : uint8_t {
  kNoNumber = 0,
  kOverflowing = 1,           // more than the tensors' dtype holds
  kNotPositiveIntegers = 2,   // among integer tensors: a divisor of 0, a negative exponent
  kNotPositive = 4,
};
uint8_t NumbersRefused(const c10::OperatorHandle& handle);

// What of this a number is, beside tensors of this dtype. Calls that differ in it are different calls.
uint8_t RefusalOf(double number, at::ScalarType dtype);

// The dtype that numbers are held against: the first tensor's that is no mask. `so_far`: of the tensors before, kUndefined
// if there are none.
inline at::ScalarType DTypeBeside(at::ScalarType so_far, at::ScalarType next) {
  return so_far == at::ScalarType::Undefined || so_far == at::kBool ? next : so_far;
}

}  // namespace torch_lazy::lazy
