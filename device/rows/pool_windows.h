// SPDX-License-Identifier: Apache-2.0
// Windows of pools over two spatial dims.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lazy/lower/lowering.h"

namespace torch_lazy::device {

constexpr int64_t kMostInWindow = 25;  // elements; ATen's loop is better at more

// One spatial dim of a pool.
struct Window {
  int dim;  // of the input
  int64_t kernel, stride, padding, dilation;
  int64_t input;       // elements
  int64_t margin = 0;  // of these elements of padding are there, at each end
};

// Of a list with a number for each spatial dim, or with one for all.
int64_t ItemOr(const ir::Ints& list, size_t k, int64_t otherwise);

int64_t CeilDiv(int64_t a, int64_t b);  // 0 for negative ones

// On a GPU, the order of the tensor's dims in memory, rows before columns: indices are made in the order in which they
// are stored.
ir::Ints OrderOf(lazy::Lowering& call, int arg);
ir::Dims InOrder(const ir::Dims& dims, const ir::Ints& order);
ir::Ints InverseOf(const ir::Ints& order);

}  // namespace torch_lazy::device
