// SPDX-License-Identifier: Apache-2.0
// Which dims a reduction folds.
#pragma once

#include "ir/graph.h"
#include "lazy/lower/lowering.h"

namespace torch_lazy::device {

// Of the tensor that a call reduces.
inline int RankOf(lazy::Lowering& call) { return call.b().rank(call.Tensor(0)); }

ir::Ints AllDims(int rank);

// Dim `dim` of a tensor of this rank, counted from the end if negative; none for a number, which has one all the same.
ir::Ints OneDim(int64_t dim, int rank);

// The dims in an `int[]?` or `int?` argument: all of them if it is None or empty.
ir::Ints DimsArgument(const lazy::Lowering& call, int arg, int rank);

}  // namespace torch_lazy::device
