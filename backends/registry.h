// SPDX-License-Identifier: Apache-2.0
// The machines this library knows.
#pragma once

#include "backends/backend.h"

namespace torch_lazy::backends {

struct CudaHost;

// The backend in use; leaked on purpose. The GPU where there is one, unless option backend says otherwise.
Backend& Get();

// Who knows whether CUDA works: null if not. Asked once, at the backend's first use.
void SetCudaFinder(const CudaHost* (*find)());

}  // namespace torch_lazy::backends
