// SPDX-License-Identifier: Apache-2.0
// Attention on a GPU as one recorded call, forward and backward.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

namespace torch_lazy::device {

// Which of the forms of results: of flash's kernels, cuDNN's, or the memory-efficient ones. Part of a trace's path.
enum class AttentionForm : int64_t { kFlash, kCudnn, kEfficient };

// True if CUDA would take cuDNN's kernels for these (batch, heads, length, width), without mask and dropout; else
// flash's.
bool TakesCudnn(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, bool is_causal,
                std::optional<double> scale);

}  // namespace torch_lazy::device
