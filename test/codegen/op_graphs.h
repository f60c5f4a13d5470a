// SPDX-License-Identifier: Apache-2.0
// Graphs of two parameters that hold every elementwise op, cast and reduction of a dtype.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace torch_lazy::codegen {

// `names` say what each output is. Those that are `inexact` may differ in the last places.
struct OpGraph {
  std::string name;
  ir::Graph graph;
  std::vector<std::string> names;
  std::vector<bool> inexact;
};

std::vector<ir::DType> DTypesOfOps();

// Only such as the dtype has any ops for.
std::vector<OpGraph> OpGraphs(ir::DType dtype);

}  // namespace torch_lazy::codegen
