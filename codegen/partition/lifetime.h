// SPDX-License-Identifier: Apache-2.0
// How long memory is held if a value is computed late, inside a reader's group.
#pragma once

#include <vector>

#include "codegen/plan/compile_options.h"
#include "ir/graph.h"

namespace torch_lazy::codegen {

// To hold so few saves a kernel or a launch, which is worth more.
inline constexpr double kFewBytes = 4096;

struct Lifetimes {
  std::vector<int> calls_before;  // of each value, in the program
  std::vector<double> bytes;      // of each value
  // Of what a value alone reads, parameters aside: once the value is there, they are free.
  std::vector<double> bytes_ending;
};

Lifetimes MakeLifetimes(const ir::Graph& graph, const CompileOptions& options);

}  // namespace torch_lazy::codegen
