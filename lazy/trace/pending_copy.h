// SPDX-License-Identifier: Apache-2.0
// Tensors that are copies which nobody has made yet.
//
// expand(x).reshape(..) copies x several times. While that copy is but a call of a trace, who can do with x and its
// strides need not wait for it; and a copy that nobody reads is never made.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

#include "lazy/eager/geometry.h"

namespace torch_lazy::lazy {

struct PendingCopy {
  at::Tensor source;   // still what was copied
  Geometry copied_to;  // of the source's sizes, over the copy's whole storage
};

// Nothing if the tensor's storage is no such copy, or one of long ago.
std::optional<PendingCopy> PendingCopyOf(const at::Tensor& tensor);

}  // namespace torch_lazy::lazy
