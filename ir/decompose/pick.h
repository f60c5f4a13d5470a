// SPDX-License-Identifier: Apache-2.0
// One element of each row, by a mask.
#pragma once

#include "ir/decompose/expression.h"

namespace torch_lazy::ir::decompose {

// Of each row along `dim`, the element where `hit` (bool, x's dims) is true: once, or never, which
// gives any number. Dims are x's without `dim`. Pointwise ops that x is made of are applied to the
// elements picked, so that nobody needs the rest of x: it is a sum along what these are made of.
Expression Pick(const Expression& x, const Expression& hit, int dim);

}  // namespace torch_lazy::ir::decompose
