// SPDX-License-Identifier: Apache-2.0
// Dropout, with the numbers that a launch on a GPU would draw.
#pragma once

#include "ir/builder.h"

namespace torch_lazy::ir::decompose {

// Of rank 0, i64; see philox.h.
struct Draw {
  Value seed, offset, threads, width, threshold;
};

// Which elements are kept. Their places are counted in the order of `order`, the dims from the
// outermost to the innermost; there are `count` of them.
Value KeptElements(Builder& b, const Draw& draw, const Dims& dims, const Ints& order, Extent count);

}  // namespace torch_lazy::ir::decompose
