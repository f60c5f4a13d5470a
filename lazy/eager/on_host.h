// SPDX-License-Identifier: Apache-2.0
// Whether the lazy device stands on the CPU or on GPUs: decided once, when first asked for.
#pragma once

namespace torch_lazy::lazy {

// True if contents are the host's memory.
bool IsOnHost();

// True if it is decided, and not so. Decides nothing: to wake CUDA spoils a later fork.
bool IsGpuInUse();

}  // namespace torch_lazy::lazy
