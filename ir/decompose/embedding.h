// SPDX-License-Identifier: Apache-2.0
// Rows of a table by index.
#pragma once

#include "ir/builder.h"

namespace torch_lazy::ir::decompose {

// weight is [rows, width], any dtype; indices i64 of any rank, not negative. Result: indices' dims,
// then width.
Value Embedding(Builder& b, Value weight, Value indices);

}  // namespace torch_lazy::ir::decompose
