// SPDX-License-Identifier: Apache-2.0
// Compiles CUDA text with NVRTC, which needs no GPU.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace torch_lazy::codegen {

// OK if NVRTC makes a cubin of it for "sm_90", say; else an error that holds its log. The library
// is looked for in the folder LAZY_NVRTC_PATH, then where the system finds libraries.
absl::Status CompileCuda(const std::string& source, const std::string& architecture);

}  // namespace torch_lazy::codegen
