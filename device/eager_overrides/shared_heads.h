// SPDX-License-Identifier: Apache-2.0
// Attention by heads that share keys and values, which the program has copied for each of them.
//
// An example: 32 heads of one query each share 8 heads of keys. expand(keys).reshape(..) would copy each key four
// times. Queries that share a head's keys may as well be four rows of one head, and no row knows of another:
//
//   query [1, 32, 1, d], keys [1, 32, l, d]   becomes   query [8, 1, 4, d], keys [8, 1, l, d], which are not copied
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

namespace torch_lazy::device {

struct SharedHeads {
  at::Tensor query, key, value;
  std::optional<at::Tensor> bias;
};

// Nothing where there are several queries to a head, or keys and values are no pending copies, or the bias is not the
// same for all heads. The result of attention lies as it would: in the order of query's elements.
std::optional<SharedHeads> BeforeCopies(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                        const std::optional<at::Tensor>& bias);

}  // namespace torch_lazy::device
