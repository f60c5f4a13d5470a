// SPDX-License-Identifier: Apache-2.0
// Reading the text form of graphs back.
//
// Names may be any words (%x, $lr); `//` comments to the end of the line are skipped. An error
// names its line.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/graph.h"

namespace torch_lazy::ir {

absl::StatusOr<Graph> Parse(absl::string_view text);                  // exactly one graph
absl::StatusOr<std::vector<Graph>> ParseAll(absl::string_view text);  // any number

}  // namespace torch_lazy::ir
