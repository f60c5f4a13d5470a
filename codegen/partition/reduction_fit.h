// SPDX-License-Identifier: Apache-2.0
// Whether a reduction can be computed inside a group's loops.
#pragma once

#include "codegen/partition/group.h"
#include "codegen/plan/compile_options.h"

namespace torch_lazy::codegen {

// Rows if the operand's innermost dim is reduced, else columns.
Group::Shape ReductionShape(const ir::Graph& graph, ir::Value reduction);

// The factors of the reduced dims, in order.
ir::Dims ReducedFactors(const ir::Graph& graph, const Factors& factors, ir::Value reduction);

// If the group, which needs the reduction's result at `map`, can compute it: gives the group the
// loops for it and returns true. Each iteration of its outer loops must need one result and run
// through one operand row:
//   - a group without inner loops lends the loops that `map` does not use, if they are the reduced
//   dims; if it uses all
//     of them, the reduced dims become new inner loops;
//   - a group with inner loops takes a reduction over the same ones.
bool FitReduction(const ir::Graph& graph, const Factors& factors, const CompileOptions& options, ir::Value reduction,
                  int map, Group& group);

// A share of rows or columns, or the rows' columns: rows walk along what is kept.
Group::Shape ShareSumShape(const ir::Graph& graph, const CompileOptions& options, ir::Value sum);

// The map of a share_sum in a group of that shape and its loops, or in a map, which then gets the
// shape. Nothing if the group has other loops.
std::optional<IndexMap> FitShareSum(const ir::Graph& graph, const Factors& factors, const CompileOptions& options,
                                    ir::Value sum, Group& group);

}  // namespace torch_lazy::codegen
