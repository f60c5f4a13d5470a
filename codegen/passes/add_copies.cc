// SPDX-License-Identifier: Apache-2.0
#include "codegen/passes/add_copies.h"

#include "codegen/layout/concats.h"

namespace torch_lazy::codegen {

ir::Graph AddCopies(const ir::Graph& graph, ir::PassContext*) { return WithCopies(graph, SharedOutputs(graph)); }

// A copy has one reader, so the rounds come to an end.
ir::Graph WithCopies(const ir::Graph& graph, const CopyPlaces& places) {
  const Factors factors(graph);
  ir::Graph copied = InsertCopies(graph, places);
  for (;;) {
    const CopyPlaces missing = PlaceOperands(copied, factors).missing_copies;
    if (missing.empty()) return copied;
    copied = InsertCopies(copied, missing);
  }
}

}  // namespace torch_lazy::codegen
