// SPDX-License-Identifier: Apache-2.0
// Walks over the elements of host values.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/host_value.h"

namespace torch_lazy::ir {

using Sizes = std::vector<int64_t>;

inline Sizes RowMajorStrides(const Sizes& sizes) {
  Sizes strides(sizes.size(), 1);
  for (size_t k = sizes.size(); k-- > 1;) strides[k - 1] = strides[k] * sizes[k];
  return strides;
}

// Calls visit(i, offset) for the elements i = 0, 1, ... of a row-major space, with offset = start +
// sum of index * stride.
template <typename Visitor>
void ForEach(const Sizes& sizes, const Sizes& strides, int64_t start, Visitor visit) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  Sizes index(sizes.size(), 0);
  int64_t offset = start;
  for (int64_t i = 0; i < count; ++i) {
    visit(i, offset);
    for (size_t k = sizes.size(); k-- > 0;) {
      offset += strides[k];
      if (++index[k] < sizes[k]) break;
      offset -= sizes[k] * strides[k];
      index[k] = 0;
    }
  }
}

inline void CopyElement(const HostValue& from, int64_t i, HostValue& to, int64_t j) {
  if (IsFloat(to.dtype)) {
    to.floats[j] = from.floats[i];
  } else {
    to.integers[j] = from.integers[i];
  }
}

}  // namespace torch_lazy::ir
