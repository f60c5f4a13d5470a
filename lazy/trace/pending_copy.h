// SPDX-License-Identifier: Apache-2.0
// Tensors that are copies which nobody has made yet.
//
// expand(x).reshape(..) copies x several times. While that copy is but a call of a trace, who can do with x and its
// strides need not wait for it; and a copy that nobody reads is never made.
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_lazy::lazy {

// What the tensor's whole storage is a copy of, in the order of the copy, and still holds what was copied. Undefined if
// the storage is no such copy, or one of long ago.
at::Tensor SourceOfPendingCopy(const at::Tensor& tensor);

}  // namespace torch_lazy::lazy
