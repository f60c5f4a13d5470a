// SPDX-License-Identifier: Apache-2.0
// The random numbers of cuDNN's dropout between the layers of a recurrent net.
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_lazy::device {

// Their state, which each call moves on, on the current device. As eager's: begun where none is, and after the
// generator was seeded, with a number of the generator. Undefined where that cannot be told, without
// libtorch_lazy_cuda.so.
at::Tensor RnnDropoutState(double dropout);

}  // namespace torch_lazy::device
