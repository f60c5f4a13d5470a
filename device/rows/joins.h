// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lazy/lower/lowering.h"

namespace torch_lazy::device {

// x with so many of `value`, a number of its dtype, before and after it along `dim`, where it then has `extent`
// elements.
ir::Value Padded(lazy::Lowering& call, ir::Value x, ir::Value value, int dim, int64_t before, int64_t after,
                 ir::Extent extent);

}  // namespace torch_lazy::device
