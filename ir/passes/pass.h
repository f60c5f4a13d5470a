// SPDX-License-Identifier: Apache-2.0
// A rewrite of graphs, as a row of a table.
//
// Each floor that rewrites graphs has a table of such rows: ir/passes/pipeline, codegen/passes/pipeline, and lazy/ for
// what needs to know of a trace. All rows are run by RunPasses, which dumps, verifies and leaves out alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/graph.h"
#include "ir/padded_extent.h"
#include "ir/verify.h"

namespace torch_lazy::ir {

// What a pass may know beside the graph, and what it tells beside the graph that it makes.
struct PassContext {
  bool for_gpu = false;
  std::vector<int64_t> seen_extents;         // sizes seen first, one per symbol: to weigh costs, never for correctness
  std::vector<bool> constant_params;         // parameters whose contents stay from run to run; empty: none
  std::vector<PaddedExtent> padded_extents;  // symbols that a pass has added; their numbers stand in seen_extents, too
};

struct Pass {
  enum class Where : uint8_t { kAnywhere, kGpu, kCpu };

  absl::string_view name;  // also in option `disable`, but for a pass that is needed
  Graph (*run)(const Graph&, PassContext*);
  Where where = Where::kAnywhere;
  bool is_needed = false;  // later stages count on it

  bool RunsFor(const PassContext& context) const {
    return where == Where::kAnywhere || (where == Where::kGpu) == context.for_gpu;
  }
};

// A row of the table for a function that needs the graph alone.
template <Graph (*kRun)(const Graph&)>
Graph OfGraphAlone(const Graph& graph, PassContext*) {
  return kRun(graph);
}

struct PassOptions {
  bool verify = false;      // check the graph after each pass; a broken one is an internal error that names the pass
  std::string dump_folder;  // receives "10-cse.lir", ...; empty: nothing
  int first_number = 10;    // of these files, which are numbered on by places in the table
  Header header = Header::kLeads;  // that is verified
};

// Runs the passes in their order, but those that option `disable` names and those for another place.
absl::StatusOr<Graph> RunPasses(absl::Span<const Pass> passes, Graph graph, const PassOptions& options,
                                PassContext* context);

// Fails where the graph, which the pass has made, is broken.
absl::Status VerifyAfter(absl::string_view pass, const Graph& graph, Header header);

}  // namespace torch_lazy::ir
