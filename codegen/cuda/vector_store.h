// SPDX-License-Identifier: Apache-2.0
// What a thread stores of V neighbours: elements in registers, which become memory together. 16-bit
// floats are float until then, and are rounded in pairs.
#pragma once

#include <string>

#include "codegen/kernels/kernel_text.h"

namespace torch_lazy::codegen::cuda {

// Declares `m<address>[V]`.
void DeclareStored(const Store& store, KernelText* text);

// Element `k`.
void PutStored(const Store& store, KernelText* text);

// All of them, to `pointer` on; `condition` may be empty.
void WriteStored(const Store& store, const std::string& condition, const std::string& pointer, KernelText* text);

// What element `k` is in memory, where neighbours do not lie side by side.
std::string StoredElement(const Store& store, const KernelText& text);

}  // namespace torch_lazy::codegen::cuda
