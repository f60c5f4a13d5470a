// SPDX-License-Identifier: Apache-2.0
// Which stores go past the caches.
//
// A plain store reads its cache line before it writes it, a third of a copy's traffic, and drives
// out what is needed soon. So a row that leaves the graph in an array larger than the caches is
// collected in scratch memory and streamed. Maps store plainly: collecting their blocks costs more
// than it saves.
#pragma once

#include <vector>

#include "codegen/kernels/body.h"
#include "codegen/plan/compile_options.h"
#include "codegen/steps/tasks.h"

namespace torch_lazy::codegen {

// Marks them in the bodies of the partition's groups.
void MarkNonTemporalStores(const ir::Graph& graph, const Partition& partition, const Tasks& tasks,
                           const CompileOptions& options, std::vector<Body>* bodies);

}  // namespace torch_lazy::codegen
