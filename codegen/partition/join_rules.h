// SPDX-License-Identifier: Apache-2.0
// The rules of partitioning, by name: what a group may compute, and where a value is stored.
//
// Each function returns the name of the first rule that holds, and an empty one where none does. The names stand in the
// text of a partition, and in what is said of two values that share no kernel.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"
#include "codegen/partition/partition_state.h"

namespace torch_lazy::codegen {

// Why the value, which one group reads, is stored nevertheless.
absl::string_view WhyStoredForOne(const PartitionState& state, ir::Value v, int group);

// Why the groups that read the value, and nobody else, each compute it again: it is never stored.
absl::string_view WhyComputedAgain(const PartitionState& state, ir::Value v, const std::vector<int>& groups);

// Why the group cannot compute the value.
absl::string_view WhyNotComputed(const PartitionState& state, ir::Value v, int group);

// Why the group, which reads the value, cannot compute and store it for others, its loops aside.
absl::string_view WhyNotStored(const PartitionState& state, ir::Value v, int group);

// Why a group that reads what the value is made of does not compute it beside what it computes.
absl::string_view WhyNoSibling(const PartitionState& state, ir::Value v, int group);

// May a number made of what the group reduces be stored by the group: at the time that the program makes it, and
// without replacing a parameter, by this or by another root, that somebody who waits for the group still reads? That
// would have to be copied.
bool CanJoinReduction(const PartitionState& state, ir::Value v, int group);

inline constexpr size_t kMostComputed = 96;  // nodes in a group: larger kernels lack registers

}  // namespace torch_lazy::codegen
