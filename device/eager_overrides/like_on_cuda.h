// SPDX-License-Identifier: Apache-2.0
// What CUDA would do with a tensor: PyTorch asks its device, dtype and sizes, and no memory.
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_lazy::device {

// A CUDA tensor like this one, without memory; fake tensors may have sizes that are no numbers yet.
at::Tensor LikeOnCuda(const at::Tensor& tensor);

}  // namespace torch_lazy::device
