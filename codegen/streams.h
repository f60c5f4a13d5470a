// SPDX-License-Identifier: Apache-2.0
// Which stores go past the caches.
//
// A plain store reads its cache line before it writes it, a third of a copy's traffic, and drives
// out what is needed soon. So what leaves the graph, is larger than the caches, and is written in
// order, is collected in small pieces and streamed.
#pragma once

#include "codegen/body.h"
#include "codegen/compile.h"
#include "codegen/units.h"

namespace torch_lazy::codegen {

// Marks them in the body of a group of this shape.
void MarkStreams(const ir::Graph& graph, const Units& units, const CompileOptions& options,
                 Group::Shape shape, Body* body);

}  // namespace torch_lazy::codegen
