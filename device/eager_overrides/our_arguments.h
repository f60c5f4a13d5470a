// SPDX-License-Identifier: Apache-2.0
// What operators of our own refuse: a model file may call them with anything.
#pragma once

#include <ATen/core/stack.h>

namespace torch_lazy::device {

void CheckArange(const torch::jit::Stack& arguments);
void CheckAttention(const torch::jit::Stack& arguments);
void CheckAttentionBackward(const torch::jit::Stack& arguments);
void CheckCudnnRnn(const torch::jit::Stack& arguments);
void CheckCudnnRnnBackward(const torch::jit::Stack& arguments);
void CheckDropout(const torch::jit::Stack& arguments);

}  // namespace torch_lazy::device
