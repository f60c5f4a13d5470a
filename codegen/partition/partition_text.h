// SPDX-License-Identifier: Apache-2.0
// A partition, and the rules that made it, in words.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "codegen/partition/partition_state.h"

namespace torch_lazy::codegen {

// A line for each group: the values that it computes, those that it stores, and the rules that decided.
//
//     partition {
//       group 0 rows: %0, %1 -> %1 | %2 not joined: full
//     }
std::string PartitionText(const ir::Graph& graph, const Partition& partition, const std::vector<Reason>& reasons);

// What a rule says, as the end of a sentence that begins with "a kernel of its own, since"; empty for no rule.
absl::string_view WordsFor(absl::string_view rule);

}  // namespace torch_lazy::codegen
