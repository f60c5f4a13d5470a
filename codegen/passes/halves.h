// SPDX-License-Identifier: Apache-2.0
// Two halves of one value side by side, which kernels read, become a choice between them by place.
//
// A rotary embedding puts the halves of each row side by side the other way round. To store them first takes a kernel
// for each half. A kernel that reads them where they are takes none. An example, of rows x of 2 n elements:
//
//   concat(-x[n..], x[..n])   becomes   [k, j] -> k == 0 ? -x[n + j] : x[j]   over two times n places
//
// Each element is the same. Where both halves are one value, there is nothing to choose. Halves that take turns, as
// stack puts them, are chosen likewise; but not in large values, whose innermost loop would be two long.
#pragma once

#include "ir/graph.h"
#include "ir/passes/pass.h"

namespace torch_lazy::codegen {

// For GPUs.
ir::Graph ChooseHalves(const ir::Graph& graph, ir::PassContext* context);

}  // namespace torch_lazy::codegen
