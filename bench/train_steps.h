// SPDX-License-Identifier: Apache-2.0
// Training steps of C++ workloads that have files of their own.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace bench {

// One step, by its number; what it returns is held until the sync.
using Step = std::function<at::Tensor(int)>;

// Lengths of sequences: the same in each step; 16 in turn; or 96 in any order, each once before any comes again.
enum class Lengths { kOne, kInTurn, kShuffled };

// The network of workloads/gpt.py; shuffled, the smaller one of gpt_shuffled.py.
Step Gpt(const c10::Device& device, Lengths lengths);

// The network of workloads/resnet.py.
Step Resnet(const c10::Device& device);

// Inference of one model by so many threads at once: 64 requests a step, answered on the host. Each is 8 rows for an
// MLP, or one image for 20 convolutions.
Step Serve(const c10::Device& device, int threads);
Step ServeConvolutions(const c10::Device& device, int threads);

}  // namespace bench
