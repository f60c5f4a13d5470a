// SPDX-License-Identifier: Apache-2.0
// Values all of whose elements are one number.
#pragma once

#include "ir/graph.h"

namespace torch_lazy::ir {

// The value with a single element of which `v` is a view, or kNoValue. What has a single element is
// its own.
Value SingleElementOf(const Graph& graph, Value v);

// The const node of which `v` is a view, or null.
const Node* ConstantOf(const Graph& graph, Value v);

// Whether all of `v` is this constant; for floats bit for bit.
bool IsConstant(const Graph& graph, Value v, double number);

}  // namespace torch_lazy::ir
