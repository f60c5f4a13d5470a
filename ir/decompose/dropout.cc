// SPDX-License-Identifier: Apache-2.0
#include "ir/decompose/dropout.h"

#include <utility>

namespace torch_lazy::ir::decompose {

Value KeptElements(Builder& b, const Draw& draw, const Dims& dims, const Ints& order, Extent count) {
  Dims ordered;
  Ints back(order.size());
  for (size_t k = 0; k < order.size(); ++k) {
    ordered.push_back(dims[order[k]]);
    back[order[k]] = static_cast<int64_t>(k);
  }
  const Value places = b.Reshape(b.Iota({DType::kI64, {count}}, 0), std::move(ordered));
  return b.Bernoulli(b.Permute(places, std::move(back)),
                     {draw.seed, draw.offset, draw.threads, draw.width, draw.threshold});
}

}  // namespace torch_lazy::ir::decompose
