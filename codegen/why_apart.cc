// SPDX-License-Identifier: Apache-2.0
#include "codegen/why_apart.h"

#include <algorithm>
#include <iterator>
#include <utility>
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

// A graph after all passes, in kernels.
class Kernels {
 public:
  static absl::StatusOr<Kernels> Of(const ir::Graph& graph, const CompileOptions& options) {
    Kernels kernels;
    LAZY_ASSIGN_OR_RETURN(PassedGraph passed, RunAllPasses(WithOwnOrigins(graph), options));
    const Factors factors(passed.graph);
    kernels.partition_ = MakePartition(passed.graph, PlaceOperands(passed.graph, factors), factors,
                                       OptionsAfter(passed, options), &kernels.reasons_);
    kernels.graph_ = std::move(passed.graph);
    return kernels;
  }

  ir::Value OriginOf(ir::Value v) const { return graph_.node(v).origin; }

  bool Computes(int group, ir::Value origin) const {
    const auto& computed = partition_.groups[group].computed;
    return std::any_of(computed.begin(), computed.end(), [&](ir::Value v) { return OriginOf(v) == origin; });
  }

  std::vector<int> GroupsOf(ir::Value origin) const {
    std::vector<int> groups;
    for (int g = 0; g < static_cast<int>(partition_.groups.size()); ++g) {
      if (Computes(g, origin)) groups.push_back(g);
    }
    return groups;
  }

  // Why values are not computed where they are needed.
  std::vector<Reason> Refusals() const {
    std::vector<Reason> refusals;
    std::copy_if(reasons_.begin(), reasons_.end(), std::back_inserter(refusals), [&](const Reason& reason) {
      return !reason.is_computed && !partition_.groups[reason.group].computes(reason.value);
    });
    return refusals;
  }

  // The first node of the group that reads the value, views between them apart; kNoValue if none does.
  ir::Value ReaderIn(int group, ir::Value value) const {
    const auto& computed = partition_.groups[group].computed;
    ir::Value first = ir::kNoValue;
    for (const ir::Value v : computed) {
      const auto& inputs = graph_.node(v).inputs;
      const bool reads = !IsView(v) && std::any_of(inputs.begin(), inputs.end(), [&](ir::Value input) {
        while (input != value && IsView(input)) input = graph_.node(input).inputs[0];
        return input == value;
      });
      if (reads && (first == ir::kNoValue || v < first)) first = v;
    }
    return first;
  }

  bool IsView(ir::Value v) const { return ir::Info(graph_.node(v).op).kind == ir::Kind::kView; }

 private:
  Kernels() = default;
  ir::Graph graph_;
  Partition partition_;
  std::vector<Reason> reasons_;
};

}  // namespace

absl::StatusOr<std::string> WhyApart(const ir::Graph& graph, const CompileOptions& options, ir::Value a, ir::Value b) {
  LAZY_ASSIGN_OR_RETURN(const Kernels kernels, Kernels::Of(graph, options));
  const std::vector<int> groups_of_a = kernels.GroupsOf(a), groups_of_b = kernels.GroupsOf(b);
  if (groups_of_a.empty() || groups_of_b.empty())
    return std::string("one of the two is not computed by a kernel: a call, a library's product, a view or a constant");
  for (const int group : groups_of_a) {
    if (kernels.Computes(group, b)) return std::string("they share a kernel");
  }
  for (const Reason& reason : kernels.Refusals()) {
    const ir::Value origin = kernels.OriginOf(reason.value);
    if ((origin == a && kernels.Computes(reason.group, b)) || (origin == b && kernels.Computes(reason.group, a)))
      return absl::StrCat(reason.rule, ": ", WordsFor(reason.rule));
  }
  return std::string("neither reads the other, nor do they read the same at the same places");
}

absl::StatusOr<std::vector<Apart>> AllApart(const ir::Graph& graph, const CompileOptions& options) {
  LAZY_ASSIGN_OR_RETURN(const Kernels kernels, Kernels::Of(graph, options));
  std::vector<Apart> all;
  for (const Reason& reason : kernels.Refusals()) {
    const ir::Value reader = kernels.ReaderIn(reason.group, reason.value);
    if (reader == ir::kNoValue || kernels.IsView(reason.value)) continue;
    const Apart apart = {kernels.OriginOf(reason.value), kernels.OriginOf(reader), reason.rule, WordsFor(reason.rule)};
    const auto is_same = [&](const Apart& other) {
      return other.made == apart.made && other.needed_by == apart.needed_by;
    };
    const bool has_origins = apart.made >= 0 && apart.needed_by >= 0 && apart.made != apart.needed_by;
    if (has_origins && std::none_of(all.begin(), all.end(), is_same)) all.push_back(apart);
  }
  return all;
}

}  // namespace torch_lazy::codegen
