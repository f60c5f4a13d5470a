// SPDX-License-Identifier: Apache-2.0
// Entries of the same calls and outputs, whatever their sizes.
//
// Most lower to one graph. A program that sees no size twice is to have kernels too, and while they are being compiled there is
// nothing to gain from lowering the same calls for one more size.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "lazy/plans.h"
#include "lazy/trie.h"

namespace torch_lazy::lazy {

struct Alike {
  std::atomic<int> cuts{0};
  std::atomic<std::weak_ptr<PlannedGraph>> planned;  // of the one that was lowered last; null if none was
};

std::shared_ptr<Alike> AlikeOf(absl::Span<const TrieNode* const> calls, const std::vector<bool>& live);

}  // namespace torch_lazy::lazy
