// SPDX-License-Identifier: Apache-2.0
#include "codegen/why_apart.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/compile.h"
#include "codegen/partition/partition.h"
#include "codegen/partition/partition_text.h"

namespace torch_lazy::codegen {
namespace {

// Passes hand origins on, so that a node of the graph can be followed.
ir::Graph WithOwnOrigins(ir::Graph graph) {
  for (size_t v = 0; v < graph.nodes.size(); ++v) graph.nodes[v].origin = static_cast<int32_t>(v);
  return graph;
}

class Follower {
 public:
  Follower(const ir::Graph& work, const Partition& partition) : work_(work), partition_(partition) {}

  bool IsOf(ir::Value v, ir::Value origin) const { return work_.node(v).origin == origin; }

  bool Computes(int group, ir::Value origin) const {
    const auto& computed = partition_.groups[group].computed;
    return std::any_of(computed.begin(), computed.end(), [&](ir::Value v) { return IsOf(v, origin); });
  }

  std::vector<int> GroupsOf(ir::Value origin) const {
    std::vector<int> groups;
    for (int g = 0; g < static_cast<int>(partition_.groups.size()); ++g) {
      if (Computes(g, origin)) groups.push_back(g);
    }
    return groups;
  }

 private:
  const ir::Graph& work_;
  const Partition& partition_;
};

}  // namespace

absl::StatusOr<std::string> WhyApart(const ir::Graph& graph, const CompileOptions& options, ir::Value a, ir::Value b) {
  LAZY_ASSIGN_OR_RETURN(const PassedGraph passed, RunAllPasses(WithOwnOrigins(graph), options));
  std::vector<Reason> reasons;
  const Factors factors(passed.graph);
  const Partition partition = MakePartition(passed.graph, PlaceOperands(passed.graph, factors), factors,
                                            OptionsAfter(passed, options), &reasons);
  const Follower follower(passed.graph, partition);
  const std::vector<int> groups_of_a = follower.GroupsOf(a), groups_of_b = follower.GroupsOf(b);
  if (groups_of_a.empty() || groups_of_b.empty())
    return std::string("one of the two is not computed by a kernel: a call, a library's product, a view or a constant");
  for (const int group : groups_of_a) {
    if (follower.Computes(group, b)) return std::string("they share a kernel");
  }
  for (const Reason& reason : reasons) {
    if (reason.is_computed) continue;
    const bool is_a = follower.IsOf(reason.value, a), is_b = follower.IsOf(reason.value, b);
    if ((is_a && follower.Computes(reason.group, b)) || (is_b && follower.Computes(reason.group, a)))
      return absl::StrCat(reason.rule, ": ", WordsFor(reason.rule));
  }
  return std::string("neither reads the other, nor do they read the same at the same places");
}

}  // namespace torch_lazy::codegen
