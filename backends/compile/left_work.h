// SPDX-License-Identifier: Apache-2.0
// What a program that ends has left to do, done without it.
//
// At its exit a program has kernels that wait for a compiler, and graphs that it has asked for and
// not planned yet. One process takes both over, for as long as any that compiles may outlive its
// program. The next run of the program then finds kernels, and which of them each graph wants.
#pragma once

#include "absl/types/span.h"
#include "backends/compile/carry_out.h"
#include "backends/compile/order.h"
#include "backends/left_graph.h"

namespace torch_lazy::backends {

// So many kernels are compiled together at most, so that what is done by a program's end is kept.
inline constexpr size_t kMostOfBatch = 8;

// Starts the process, and returns. Whatever keeps it from starting costs the next run time, only. `order`: the kernels
// that wait; its `others` may name them, too.
void LeaveBehind(Order order, absl::Span<const LeftGraph> graphs);

// In that process: kernels first, then one graph after the other, in batches that are kept as they
// are done. What another process is compiling is left to that.
void CarryOutLeft(const Order& order, const CarryOutOptions& options);

}  // namespace torch_lazy::backends
