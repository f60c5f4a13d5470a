// SPDX-License-Identifier: Apache-2.0
// What a block of a row kernel does, given its number: which of the kernel's functions it calls.
#pragma once

#include <string>

#include "codegen/cuda/row_tiling.h"
#include "codegen/cuda/vector_access.h"
#include "codegen/kernels/kernel_text.h"

namespace torch_lazy::codegen::cuda {

struct RowDispatch {
  RowTiling size;
  bool has_shares = false;
  int width = 1;          // of vectors
  bool is_wide = false;   // is there a function with vectors? Where rows seen first allow no
                          // vectors, only without: the other would take compilers long, for few
  std::string length;     // of a row, as text
  std::string condition;  // that vectors may be used, likewise
  Kernel::Exact exact;
};

// KERNEL_block calls KERNEL_kept or KERNEL_walked, KERNEL_exact_block the former alone.
void EmitRowDispatch(const RowDispatch& rows, KernelText* text);

// Rows that blocks do in turns have an entry for the length seen first, if all threads have vectors
// then and these are aligned where pointers are. `access`: null if there are no vectors.
Kernel::Exact ExactRows(const RowTiling& size, const Loops& loops, const VectorAccess* access,
                        const std::string& length, const CompileOptions& options);

}  // namespace torch_lazy::codegen::cuda
