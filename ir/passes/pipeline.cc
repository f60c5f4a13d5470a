// SPDX-License-Identifier: Apache-2.0
#include "ir/passes/pipeline.h"

#include <algorithm>
#include <utility>

#include "ir/passes/passes.h"

namespace torch_lazy::ir {
namespace {

// Equal nodes first, since lowerings repeat themselves, and half of the nodes is half of the time.
// Then permutations and views, so that the others see what is behind them; broadcasts then leave
// single numbers to fold; folded numbers let algebra fire; equal nodes are found again when all is
// in its simplest form; at last what nobody reads goes.
constexpr Pass kPasses[] = {
    {"cse", OfGraphAlone<EliminateCommonSubexpressions>},
    {"permute_hoisting", OfGraphAlone<HoistPermutes>},
    {"view_composition", OfGraphAlone<ComposeViews>},
    {"expand_hoisting", OfGraphAlone<HoistExpands>},
    {"folding", OfGraphAlone<FoldConstants>},
    {"algebra", OfGraphAlone<SimplifyAlgebra>},
    {"cse", OfGraphAlone<EliminateCommonSubexpressions>},
    {"dce", OfGraphAlone<EliminateDeadCode>},
};

}  // namespace

absl::Span<const Pass> Passes() { return kPasses; }

const Pass* FindPass(absl::Span<const Pass> passes, absl::string_view name) {
  const auto found = std::find_if(passes.begin(), passes.end(), [&](const Pass& pass) { return pass.name == name; });
  return found == passes.end() ? nullptr : &*found;
}

absl::StatusOr<Graph> Optimize(Graph graph, const PassOptions& options) {
  PassContext context;
  return RunPasses(kPasses, std::move(graph), options, &context);
}

}  // namespace torch_lazy::ir
