// SPDX-License-Identifier: Apache-2.0
// Copies that are known to be missing before anything is planned.
#pragma once

#include "codegen/layout/copies.h"
#include "ir/graph.h"
#include "ir/passes/pass.h"

namespace torch_lazy::codegen {

// Of outputs that share bytes, and of operands that cannot be computed into their place in a concat.
ir::Graph AddCopies(const ir::Graph& graph, ir::PassContext* context);

// The graph with these copies, and with those that its concats miss then.
ir::Graph WithCopies(const ir::Graph& graph, const CopyPlaces& places);

}  // namespace torch_lazy::codegen
