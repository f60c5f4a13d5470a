// SPDX-License-Identifier: Apache-2.0
// An extent rounded up, as a symbol that a graph did not have.
#pragma once

#include <cstdint>

#include "ir/type.h"

namespace torch_lazy::ir {

// An extent, and two others beside those of the graph: that rounded up to a multiple of 8, and what this is more.
struct PaddedExtent {
  static constexpr int64_t kMultiple = 8;
  static constexpr int64_t RoundUp(int64_t number) { return (number + kMultiple - 1) / kMultiple * kMultiple; }
  Extent part, whole, rest;
};

}  // namespace torch_lazy::ir
