// SPDX-License-Identifier: Apache-2.0
// NVRTC as a program with LibTorch finds it.
#pragma once

#include <dlfcn.h>

#include "backends/cuda/nvrtc.h"

namespace torch_lazy::backends {

// NVRTC is looked for beside this library, if nowhere else. Nothing of it is called.
inline void OpenTorch() { dlopen(LAZY_TORCH_DIR "/lib/libc10.so", RTLD_LAZY | RTLD_LOCAL); }

}  // namespace torch_lazy::backends

// A test that compiles has nothing to say without: the wheel that set-up installs brings it.
#define LAZY_ASSERT_NVRTC()                                               \
  do {                                                                    \
    ::torch_lazy::backends::OpenTorch();                                  \
    const auto nvrtc_found = ::torch_lazy::backends::cuda::Nvrtc::Find(); \
    ASSERT_TRUE(nvrtc_found.ok()) << nvrtc_found.status();                \
  } while (false)
