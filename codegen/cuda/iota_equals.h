// SPDX-License-Identifier: Apache-2.0
// Is a place along the row the one that the row names? Asked of V neighbours at once: one 64-bit
// difference, then a comparison with 0, 1, ... for each.
#pragma once

#include <string>

#include "codegen/kernels/kernel_text.h"

namespace torch_lazy::codegen::cuda {

// Does the expression compare an index along the loop with a number that is the same all along it?
// `loop` may be null.
bool IsIotaEquals(const KernelText& text, int expression, const Loop* loop);

// Declares how far the number lies from where the loops stand.
void DeclareIotaEquals(int expression, const Loop& loop, absl::Span<const KernelText::Along> along, KernelText* text);

// Declares the expression, of element `k`.
void DefineIotaEquals(int expression, KernelText* text);

}  // namespace torch_lazy::codegen::cuda
