// SPDX-License-Identifier: Apache-2.0
// libtorch_lazy_cuda.so: the one part that needs PyTorch's CUDA libraries, opened where CUDA works.
#pragma once

namespace torch_lazy::lazy {

// A function of the library; null on the host, or without the library.
void* FindInCudaLibrary(const char* name);

}  // namespace torch_lazy::lazy
