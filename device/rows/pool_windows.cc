// SPDX-License-Identifier: Apache-2.0
#include "device/rows/pool_windows.h"

#include <numeric>

namespace torch_lazy::device {

int64_t ItemOr(const ir::Ints& list, size_t k, int64_t otherwise) {
  return list.empty() ? otherwise : list[list.size() == 1 ? 0 : k];
}

int64_t CeilDiv(int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

ir::Ints OrderOf(lazy::Lowering& call, int arg) {
  const ir::Node& node = call.b().graph().node(call.Tensor(arg));
  const int rank = node.type.rank();
  if (call.IsForCuda() && node.op == ir::Op::kPermute &&
      node.attrs.dims[static_cast<size_t>(rank) - 2] < node.attrs.dims[static_cast<size_t>(rank) - 1]) {
    return node.attrs.dims;
  }
  ir::Ints order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

ir::Dims InOrder(const ir::Dims& dims, const ir::Ints& order) {
  ir::Dims ordered = dims;
  for (size_t d = 0; d < order.size(); ++d) ordered[static_cast<size_t>(order[d])] = dims[d];
  return ordered;
}

ir::Ints InverseOf(const ir::Ints& order) {
  ir::Ints inverse(order.size());
  for (size_t k = 0; k < order.size(); ++k) inverse[static_cast<size_t>(order[k])] = static_cast<int64_t>(k);
  return inverse;
}

}  // namespace torch_lazy::device
