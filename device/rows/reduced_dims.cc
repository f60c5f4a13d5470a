// SPDX-License-Identifier: Apache-2.0
#include "device/rows/reduced_dims.h"

#include <numeric>

namespace torch_lazy::device {

ir::Ints AllDims(int rank) {
  ir::Ints dims(rank);
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

ir::Ints OneDim(int64_t dim, int rank) {
  if (rank == 0) return {};
  return {dim < 0 ? dim + rank : dim};
}

ir::Ints DimsArgument(const lazy::Lowering& call, int arg, int rank) {
  if (call.IsNone(arg)) return AllDims(rank);
  ir::Ints dims;
  for (const int64_t dim : call.IntList(arg)) {
    for (const int64_t wrapped : OneDim(dim, rank)) dims.push_back(wrapped);
  }
  return dims.empty() ? AllDims(rank) : dims;
}

}  // namespace torch_lazy::device
