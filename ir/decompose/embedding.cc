// SPDX-License-Identifier: Apache-2.0
#include "ir/decompose/embedding.h"

namespace torch_lazy::ir::decompose {

// Take needs operands of one rank. Leading ones bring the table there without a product of symbols,
// which a flattening of the indices would need.
Value Embedding(Builder& b, Value weight, Value indices) {
  constexpr Extent kOne = Extent::Constant(1);
  const Extent rows = b.dims(weight)[0], width = b.dims(weight)[1];
  Dims result = b.dims(indices);
  result.push_back(width);

  Dims index_dims = b.rank(indices) == 0 ? Dims{kOne} : b.dims(indices);
  const int dim = static_cast<int>(index_dims.size()) - 1;
  Dims table_dims(dim, kOne);
  table_dims.insert(table_dims.end(), {rows, width});
  Dims wide = index_dims;
  index_dims.push_back(kOne);
  wide.push_back(width);
  const Value index = b.Expand(b.Reshape(indices, index_dims), wide);
  return b.Reshape(b.Take(b.Reshape(weight, table_dims), index, dim), result);
}

}  // namespace torch_lazy::ir::decompose
