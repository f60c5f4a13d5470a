// SPDX-License-Identifier: Apache-2.0
// The passes in their order.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/graph.h"

namespace torch_lazy::ir {

struct Pass {
  absl::string_view name;
  Graph (*run)(const Graph&);
};
absl::Span<const Pass> Passes();
const Pass* FindPass(absl::string_view name);  // null if there is none

struct OptimizeOptions {
  bool verify = false;      // check the graph after each pass; a broken one is an internal error that
                            // names the pass
  std::string dump_folder;  // receives "10-cse.lir", ...; empty: nothing
};

// Runs all passes but those that option `disable` names.
absl::StatusOr<Graph> Optimize(Graph graph, const OptimizeOptions& options);

}  // namespace torch_lazy::ir
