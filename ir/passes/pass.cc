// SPDX-License-Identifier: Apache-2.0
#include "ir/passes/pass.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/pace.h"
#include "base/status.h"
#include "ir/print.h"

namespace torch_lazy::ir {

absl::Status VerifyAfter(absl::string_view pass, const Graph& graph, Header header) {
  const absl::Status status = Verify(graph, header);
  if (status.ok()) return status;
  return absl::InternalError(
      absl::StrCat("pass ", pass, " made a broken graph: ", status.message(), "\n", Print(graph)));
}

absl::StatusOr<Graph> RunPasses(absl::Span<const Pass> passes, Graph graph, const PassOptions& options,
                                PassContext* context) {
  int number = options.first_number - 1;
  for (const Pass& pass : passes) {
    ++number;
    if (!pass.RunsFor(*context) || (!pass.is_needed && base::IsDisabled(pass.name))) continue;
    const size_t nodes_before = graph.nodes.size();
    graph = pass.run(graph, context);
    base::GiveWay();
    LAZY_LOG(2, "pass ", pass.name, ": ", nodes_before, " -> ", graph.nodes.size(), " nodes");
    if (!options.dump_folder.empty())
      base::WriteDump(options.dump_folder, absl::StrCat(number, "-", pass.name, ".lir"), Print(graph));
    if (options.verify) LAZY_RETURN_IF_ERROR(VerifyAfter(pass.name, graph, options.header));
  }
  return graph;
}

}  // namespace torch_lazy::ir
