// SPDX-License-Identifier: Apache-2.0
// A device whose kernels return at once: what PyTorch itself takes on the host.
//
// It has the calls of record_bench and of the programs that bench/figures/host trains. A call makes its results'
// tensors and storages, uninitialized, and nothing else.
#pragma once

#include <ATen/core/Tensor.h>

namespace bench {

// A new tensor of these sizes, or of those of another one.
at::Tensor NewTensor(c10::IntArrayRef sizes, at::ScalarType type);
inline at::Tensor Like(const at::Tensor& tensor) { return NewTensor(tensor.sizes(), tensor.scalar_type()); }

}  // namespace bench
