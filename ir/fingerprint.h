// SPDX-License-Identifier: Apache-2.0
// The 128-bit name of a graph: equal graphs have equal ones.
#pragma once

#include "base/fingerprint.h"
#include "ir/graph.h"

namespace torch_lazy::ir {

base::Fingerprint FingerprintOf(
    const Graph& graph);  // stable over runs; the graph's name does not count

// Everything that tells a node from another, as bytes: what CSE and the fingerprint compare.
void AppendKey(const Node& node, std::string* key);

}  // namespace torch_lazy::ir
