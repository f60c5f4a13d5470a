// SPDX-License-Identifier: Apache-2.0
// A CUDA kernel's entries, and what its functions begin with.
#pragma once

#include <string>

#include "codegen/kernels/kernel_text.h"

namespace torch_lazy::codegen::cuda {

// Opens a function of the kernel, in which the pointers, the numbers and the scalars have their
// names; `name` is KERNEL or begins so, `parameters` follow the kernel's arguments.
void OpenFunction(const std::string& qualifiers, const std::string& name, const std::string& parameters,
                  KernelText* text);
void CloseFunction(KernelText* text);

// The kernel of the functions written so far: KERNEL_block does one block's work, given the block's
// number within its instance, and KERNEL_exact_block, if there is an `exact` length.
WrittenKernel Finish(const KernelText& text, const std::string& prefix, const ir::Dims& range, int threads,
                     int64_t iterations_per_block, int blocks_at_once = 0, Kernel::Exact exact = {});

}  // namespace torch_lazy::codegen::cuda
