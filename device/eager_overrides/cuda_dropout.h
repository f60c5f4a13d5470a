// SPDX-License-Identifier: Apache-2.0
// What ATen's kernel of native_dropout does on CUDA, element by element.
//
// A number of curand's Philox for each element, as float in (0, 1]; the element is kept where that is less than 1 - p,
// and multiplied by 1 / (1 - p). This is PyTorch's own affair and may change, so `DrawsAsKnown` asks.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lazy/eager/eager_device.h"

namespace torch_lazy::device {

// How the kernel goes over a tensor; see ir/philox.h.
struct DropoutLaunch {
  int64_t threads;
  int64_t width;  // of its accesses, by dtype, alignment and number of elements; 1 where the tensor is not dense
  std::vector<int64_t> order;  // the dims in which elements are counted, from the outermost to the innermost
  uint64_t numbers_per_thread;
};
DropoutLaunch LaunchOf(const at::Tensor& input, lazy::Multiprocessors gpu);

// Of numbers of 32 bits, those below it keep their elements.
int64_t ThresholdOf(at::ScalarType dtype, double p);
double ScaleOf(at::ScalarType dtype, double p);

// Does the kernel draw as told here? Compared with a small and a larger tensor of CUDA's, once for each type and width.
bool DrawsAsKnown(at::ScalarType dtype, int64_t width);

}  // namespace torch_lazy::device
