// SPDX-License-Identifier: Apache-2.0
// Nested and jagged tensors: ATen runs all of it.
#include "device/rows/rows.h"

namespace torch_lazy::device {
namespace {

constexpr lazy::Row kNestedRows[] = {
    {.name = "aten::_nested*", .flags = kTakesHostTensors},
    {.name = "aten::_padded_dense_to_jagged_forward", .flags = kImmediate},
};

}  // namespace

Rows NestedRows() { return kNestedRows; }

}  // namespace torch_lazy::device
