// SPDX-License-Identifier: Apache-2.0
// Random graphs with inputs to evaluate them, the same for the same seed.
#pragma once

#include <cstdint>

#include "ir/evaluate.h"
#include "ir/graph.h"

namespace torch_lazy::ir {

struct RandomGraph {
  Graph graph;
  EvaluateInputs inputs;
};

// About `num_nodes` nodes of all kinds but calls and transcendental functions, biased towards what
// passes rewrite: constants that are neutral elements, chains of views and casts, broadcasts, equal
// expressions, dead nodes.
RandomGraph MakeRandomGraph(uint32_t seed, int num_nodes);

}  // namespace torch_lazy::ir
