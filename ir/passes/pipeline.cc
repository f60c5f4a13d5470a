// SPDX-License-Identifier: Apache-2.0
#include "ir/passes/pipeline.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/pace.h"
#include "ir/passes/passes.h"
#include "ir/print.h"
#include "ir/verify.h"

namespace torch_lazy::ir {
namespace {

// Equal nodes first, since lowerings repeat themselves, and half of the nodes is half of the time.
// Then permutations and views, so that the others see what is behind them; broadcasts then leave
// single numbers to fold; folded numbers let algebra fire; equal nodes are found again when all is
// in its simplest form; at last what nobody reads goes.
constexpr Pass kPasses[] = {
    {"cse", EliminateCommonSubexpressions}, {"permute_hoisting", HoistPermutes}, {"view_composition", ComposeViews},
    {"expand_hoisting", HoistExpands},      {"folding", FoldConstants},          {"algebra", SimplifyAlgebra},
    {"cse", EliminateCommonSubexpressions}, {"dce", EliminateDeadCode},
};

absl::Status Check(const Graph& graph, absl::string_view pass) {
  const absl::Status status = Verify(graph);
  if (status.ok()) return status;
  return absl::InternalError(
      absl::StrCat("pass ", pass, " made a broken graph: ", status.message(), "\n", Print(graph)));
}

}  // namespace

absl::Span<const Pass> Passes() { return kPasses; }

const Pass* FindPass(absl::string_view name) {
  const auto found =
      std::find_if(std::begin(kPasses), std::end(kPasses), [&](const Pass& p) { return p.name == name; });
  return found == std::end(kPasses) ? nullptr : found;
}

absl::StatusOr<Graph> Optimize(Graph graph, const OptimizeOptions& options) {
  int number = 0;
  for (const Pass& pass : kPasses) {
    number += 10;
    if (base::IsDisabled(pass.name)) continue;
    const size_t nodes_before = graph.nodes.size();
    graph = pass.run(graph);
    base::GiveWay();
    LAZY_LOG(2, "pass ", pass.name, ": ", nodes_before, " -> ", graph.nodes.size(), " nodes");
    if (!options.dump_folder.empty()) {
      base::WriteDump(options.dump_folder, absl::StrCat(number, "-", pass.name, ".lir"), Print(graph));
    }
    if (!options.verify) continue;
    const absl::Status status = Check(graph, pass.name);
    if (!status.ok()) return status;
  }
  return graph;
}

}  // namespace torch_lazy::ir
