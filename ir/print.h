// SPDX-License-Identifier: Apache-2.0
// The text form of a graph.
//
// Canonical: parameters are %p0, %p1, ..., scalars $0, $1, ..., the other nodes %0, %1, ... in
// program order, so equal graphs of one name have equal texts. Parse (parse.h) reads it back.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace torch_lazy::ir {

std::string Print(const Graph& graph);
std::string PrintNode(const Graph& graph, Value v);                          // one line, without its end
std::string PrintNodes(const Graph& graph, absl::Span<const Value> values);  // a line each
std::string ValueName(const Graph& graph, Value v);                          // "%3", "%p0", "$1"; counts nodes: linear
std::vector<std::string> ValueNames(const Graph& graph);                     // of all

// The shortest text that reads back as the same number of this float type: "0.1", "inf", "nan",
// "nan:0x7ff8000000000001".
std::string PrintFloat(double value, DType dtype);

}  // namespace torch_lazy::ir
