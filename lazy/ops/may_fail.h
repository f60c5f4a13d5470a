// SPDX-License-Identifier: Apache-2.0
// Which operators may refuse values when they run.
//
// Note [Failing calls]
// An error that depends on values is raised when the trace runs. Then storages must hold what they held before the call
// that fails, as if the program had stopped there. The interpreter runs calls in the program's order, so this is what
// it leaves. A plan runs them in another: it first copies each storage that it overwrites before a call that may fail,
// and puts the copies back when one does; the interpreter then finds the first call of the program that fails. What the
// program made after it never gets a value: its storages stay with the failed trace, which says so to whoever reads
// them.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace torch_lazy::lazy {

// False only for operators that take all values of the shapes and dtypes they take.
bool MayFail(const c10::OperatorHandle& handle);

}  // namespace torch_lazy::lazy
