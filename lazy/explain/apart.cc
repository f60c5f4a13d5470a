// SPDX-License-Identifier: Apache-2.0
#include "lazy/explain/apart.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lazy/run/plans.h"

namespace torch_lazy::lazy {
namespace {

constexpr size_t kMostNodes = 20000;
constexpr size_t kMostLines = 12;

using Pair = std::tuple<std::string, std::string, absl::string_view, absl::string_view>;  // as PlannedGraph::Apart

std::map<Pair, int> CountPairs() {
  std::map<Pair, int> pairs;
  size_t nodes = 0;
  for (const std::shared_ptr<PlannedGraph>& planned : AllPlanned()) {
    if (nodes += planned->graph().nodes.size(); nodes > kMostNodes) break;
    for (const PlannedGraph::Apart& pair : planned->AllApart())
      ++pairs[{pair.made->name, pair.needed_by->name, pair.rule, pair.words}];
  }
  return pairs;
}

}  // namespace

std::string TextOfApart() {
  const std::map<Pair, int> counts = CountPairs();
  std::vector<std::pair<Pair, int>> pairs(counts.begin(), counts.end());
  std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (size_t k = 0; k < std::min(pairs.size(), kMostLines); ++k) {
    const auto& [made, needed_by, rule, words] = pairs[k].first;
    absl::StrAppend(&text, "apart ", pairs[k].second, " times: ", made, " is not in the kernel of ", needed_by,
                    ", since ", words, " (", rule, ")\n");
  }
  if (pairs.size() > kMostLines) absl::StrAppend(&text, "apart: ", pairs.size() - kMostLines, " more pairs\n");
  return text;
}

}  // namespace torch_lazy::lazy
