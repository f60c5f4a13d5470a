// SPDX-License-Identifier: Apache-2.0
// In what a trace differs from those that are known, as a reader says it.
#pragma once

#include <string>

#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {

// "call 17, aten::add.Tensor: argument `self` is float32[3, 4] where it was float32[5, 4]"
std::string DifferenceOf(const Trace& trace);

}  // namespace torch_lazy::lazy
