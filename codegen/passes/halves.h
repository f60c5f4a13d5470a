// SPDX-License-Identifier: Apache-2.0
// Two halves of one value side by side, which kernels read, become a choice between them by place.
//
// A rotary embedding puts the halves of each row side by side the other way round. To store them first takes a kernel
// for each half. A kernel that reads them where they are takes none. An example, of rows x of 2 n elements:
//
//   concat(-x[n..], x[..n])   becomes   [k, j] -> k == 0 ? -x[n + j] : x[j]   over two times n places
//
// Each element is the same. Where both halves are one value, there is nothing to choose.
#pragma once

#include "ir/graph.h"

namespace torch_lazy::codegen {

// For GPUs.
ir::Graph ChooseHalves(const ir::Graph& graph);

}  // namespace torch_lazy::codegen
