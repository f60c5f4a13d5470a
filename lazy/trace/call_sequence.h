// SPDX-License-Identifier: Apache-2.0
// The calls of all traces that end at one node of the trie, and what of their work is kept: all that lowering, binding
// and interpreting such a trace have to know of the entry that runs it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "lazy/trace/trie.h"

namespace torch_lazy::lazy {

// Operators of the calls and slots of their operands, the same in all processes. Sizes do not count.
void AppendNames(absl::Span<const TrieNode* const> calls, std::string* names);

class CallSequence {
 public:
  // Of traces whose newest call is `end`'s.
  CallSequence(const TrieNode* end, std::vector<bool> live);

  // In the program's order.
  absl::Span<const TrieNode* const> calls() const { return calls_; }
  // Per slot: its content is an output.
  const std::vector<bool>& live() const { return live_; }
  // Slots whose content nobody needs after call k.
  absl::Span<const int32_t> EndAfter(size_t k) const { return ends_[k]; }
  // Of traces whose results are to be the same from run to run: deterministic.h.
  bool IsDeterministic() const;

  // True if call k is not lowered, since a kernel that would compute it has failed.
  bool IsLeftToAten(size_t k) const { return k < left_to_aten_.size() && left_to_aten_[k]; }
  const std::vector<bool>& left_to_aten() const { return left_to_aten_; }
  void LeaveToAten(std::vector<bool> calls) { left_to_aten_ = std::move(calls); }

 private:
  std::vector<const TrieNode*> calls_;
  std::vector<bool> live_;
  std::vector<std::vector<int32_t>> ends_;
  std::vector<bool> left_to_aten_;  // per call; empty: none is
};

}  // namespace torch_lazy::lazy
