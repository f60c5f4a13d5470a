// SPDX-License-Identifier: Apache-2.0
// Random numbers of V neighbours at once: a generator gives several together.
#pragma once

#include <string>

#include "codegen/kernels/kernel_text.h"

namespace torch_lazy::codegen::cuda {

// Does the expression draw, and do neighbours along the loop draw at neighbouring places? `loop`
// may be null.
bool DrawsForNeighbours(const KernelText& text, int expression, const Loop* loop);

// Declares what it draws for V elements from where the loops stand.
void DeclareDraws(int expression, absl::Span<const KernelText::Along> along, KernelText* text);

// Declares the expression, of element `k` of these.
void DefineDraw(int expression, KernelText* text);

}  // namespace torch_lazy::codegen::cuda
