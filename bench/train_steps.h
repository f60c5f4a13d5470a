// SPDX-License-Identifier: Apache-2.0
// Training steps of C++ workloads that have files of their own.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace bench {

// One step, by its number; what it returns is held until the sync.
using Step = std::function<at::Tensor(int)>;

// The network of workloads/gpt.py. With varying lengths, each of 16 steps has another length of its sequences.
Step Gpt(const c10::Device& device, bool varies);

// The network of workloads/resnet.py.
Step Resnet(const c10::Device& device);

}  // namespace bench
