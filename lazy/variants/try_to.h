// SPDX-License-Identifier: Apache-2.0
// Steps that may fail, and without which an entry still runs.
#pragma once

#include "absl/functional/function_ref.h"

namespace torch_lazy::lazy {

// Calls `work`, which may fail for want of memory or by an error of ours. Then a warning says, once, that a trace could
// not be `done`, and what comes of it. What else it raises, an interrupt say, is the caller's. False if it has failed.
bool TryTo(const char* done, const char* so, absl::FunctionRef<void()> work);

}  // namespace torch_lazy::lazy
