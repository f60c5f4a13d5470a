// SPDX-License-Identifier: Apache-2.0
// What must hold of a graph: the op table's rules, and the shape rules of views.
#pragma once

#include "absl/status/status.h"
#include "ir/graph.h"

namespace torch_lazy::ir {

enum class Header : uint8_t {
  kLeads,     // parameters and scalars stand before all other nodes, as in a text
  kAnywhere,  // in their order
};
absl::Status Verify(const Graph& graph, Header header = Header::kLeads);

// One node, its inputs being right: inputs stand before it, dtypes and dims fit, attributes are in
// range. Element counts of a reshape are compared only where all extents are constants: in general
// they are products of symbols.
absl::Status VerifyNode(const Graph& graph, Value v);

}  // namespace torch_lazy::ir
