// SPDX-License-Identifier: Apache-2.0
// Where a thread stands: the positions of loops, and the addresses there.
#pragma once

#include <string>
#include <vector>

#include "codegen/kernels/kernel_text.h"

namespace torch_lazy::codegen::cuda {

// Declares <letter>0, <letter>1, ..., the positions of the loops in iteration `number` of all; a
// single loop's is that number itself. They are what is returned.
std::vector<KernelText::Along> PlaceLoops(const std::vector<Loop>& loops, char letter, const std::string& number,
                                          KernelText* text);

// Declares a0, a1, ...: where each address is at these positions, those of iteration `number`, without
// its offset.
void PlaceAddresses(absl::Span<const KernelText::Along> along, const std::string& number, KernelText* text);

// The element of an address further along, with its offset: "a0[j]", or a number of an iota.
std::string PlaceText(int address, absl::Span<const KernelText::Along> along, KernelText* text);
std::string PointerText(int address, absl::Span<const KernelText::Along> along, KernelText* text);

}  // namespace torch_lazy::codegen::cuda
