// SPDX-License-Identifier: Apache-2.0
// Faults of the machine: a status below this folder, an exception above it.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace torch_lazy::lazy {

// Exhausted memory is c10::OutOfMemoryError, what a device's driver says c10::AcceleratorError with the driver's
// number, and anything else c10::Error: the types that eager raises.
void RaiseIfError(const absl::Status& status);

// The way back, of what is being caught.
absl::Status StatusOfError();

// The text of what is being caught, without a trace of the stack.
std::string TextOfError();

}  // namespace torch_lazy::lazy
