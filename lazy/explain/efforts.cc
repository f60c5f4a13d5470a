// SPDX-License-Identifier: Apache-2.0
#include "lazy/explain/efforts.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/metrics.h"
#include "lazy/host/ledger.h"
#include "lazy/variants/variants.h"

namespace torch_lazy::lazy {
namespace {

using NamedEffort = std::pair<std::string, Effort>;

double SecondsOf(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

// Each variant has a row, whether an entry has asked for it yet or not.
std::vector<NamedEffort> AllEfforts() {
  for (const VariantKind& kind : VariantKinds()) AccountOf(kind.name);
  return Efforts();
}

std::string JsonOf(const NamedEffort& named) {
  const auto& [name, effort] = named;
  return absl::StrCat("\"", name, "\": {\"tried\": ", effort.tried, ", \"used\": ", effort.used,
                      ", \"seconds_spent\": ", SecondsOf(effort.spent_ns),
                      ", \"seconds_saved\": ", SecondsOf(effort.saved_ns), "}");
}

}  // namespace

std::string TextOfEfforts() {
  std::string text;
  for (const auto& [name, effort] : AllEfforts()) {
    if (effort.tried == 0 && effort.used == 0) continue;
    absl::StrAppend(&text, "effort: ", name, " tried ", effort.tried, " times in ", SecondsOf(effort.spent_ns),
                    " s, used ", effort.used, " times, ");
    if (effort.saved_ns == 0) {
      absl::StrAppend(&text, "savings not timed\n");
    } else {
      absl::StrAppend(&text, SecondsOf(effort.saved_ns), " s saved\n");
    }
  }
  return text;
}

std::string MetricsJson() {
  const std::string counts = base::MetricsJson();
  const std::string efforts =
      absl::StrJoin(AllEfforts(), ", ", [](std::string* out, const NamedEffort& named) { *out += JsonOf(named); });
  return absl::StrCat(absl::string_view(counts).substr(0, counts.size() - 1), ", \"efforts\": {", efforts, "}}");
}

}  // namespace torch_lazy::lazy
