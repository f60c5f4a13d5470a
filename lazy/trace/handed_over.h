// SPDX-License-Identifier: Apache-2.0
// What a trace that is cut between two calls would have to store.
#pragma once

#include <cstdint>
#include <vector>

#include "lazy/trace/slot.h"
#include "lazy/trace/trie.h"

namespace torch_lazy::lazy {

// Bytes that exceed the least by an eighth are as few.
constexpr int64_t NearlyLeast(int64_t least) { return least + least / 8; }

// Per place among calls [begin, end), from before the first to behind the last: the bytes of results that calls before
// it make, and calls behind it use.
std::vector<int64_t> BytesHandedOver(const std::vector<TrieNode*>& calls, const std::vector<TraceSlot>& slots,
                                     size_t begin, size_t end);

}  // namespace torch_lazy::lazy
