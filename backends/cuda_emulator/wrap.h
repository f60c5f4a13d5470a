// SPDX-License-Identifier: Apache-2.0
// CUDA C++ as C++ for the CPU's compiler.
#pragma once

#include <string>

#include "codegen/plan/plan.h"

namespace torch_lazy::backends {

// A kernel whose symbol is a cuda_emulator::LazyKernel. Its text may be followed by others' in one
// source.
//
// The text may use what prelude.cc defines, and test for LAZY_CUDA_EMULATOR. No PTX; `extern __shared__`
// is unknown, and so is shared memory in functions that are inline but not static.
codegen::Kernel WrapForCpu(const codegen::Kernel& kernel);
std::string WrappedName(const std::string& kernel);

// What the text of a kernel may use: types, intrinsics, mathematics.
extern const char kPrelude[];

}  // namespace torch_lazy::backends
