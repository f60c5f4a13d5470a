// SPDX-License-Identifier: Apache-2.0
// What runs when a trace is cut at a node of the trie.
#pragma once

#include <memory>
#include <vector>

#include "lazy/trace.h"

namespace torch_lazy::lazy {

// Made at the first cut at its node with live outputs that no earlier entry of the node serves.
class Entry {
 public:
  Entry(const TrieNode* end, std::vector<bool> live);

  // True if a cut whose live written slots are `live` can use this entry.
  bool Serves(const std::vector<bool>& live) const;
  const std::vector<bool>& live() const { return live_; }
  absl::Span<const TrieNode* const> calls() const { return calls_; }
  // Slots whose content nobody needs after call k.
  absl::Span<const int32_t> EndAfter(size_t k) const { return ends_[k]; }

 private:
  std::vector<const TrieNode*> calls_;  // in program order
  std::vector<bool> live_;              // per slot: its content is an output
  std::vector<std::vector<int32_t>> ends_;
};

}  // namespace torch_lazy::lazy
