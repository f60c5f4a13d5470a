// SPDX-License-Identifier: Apache-2.0
// Entries of the same calls and outputs, whatever their sizes.
//
// Most lower to one graph. A program that sees no size twice is to have kernels too, and while they are being compiled
// there is nothing to gain from lowering the same calls for one more size.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "lazy/run/plans.h"
#include "lazy/trace/trie.h"

namespace torch_lazy::lazy {

class SizeFamily {
 public:
  explicit SizeFamily(std::string note) : note_(std::move(note)) {}

  std::atomic<int> cuts{0};

  // True if the disk says that a former process has lowered such calls: they have come twice there.
  bool HasComeTwice();
  // Has the disk say so.
  void NoteThatItHas();

  // Of the one that was lowered last; null if none was, or if it is forgotten.
  std::shared_ptr<PlannedGraph> planned() {
    std::lock_guard<std::mutex> lock(lock_);
    return planned_.lock();
  }
  void set_planned(const std::shared_ptr<PlannedGraph>& planned) {
    std::lock_guard<std::mutex> lock(lock_);
    planned_ = planned;
  }

 private:
  const std::string note_;  // its name
  std::mutex lock_;         // over what follows; libstdc++ 12 has a race in std::atomic<std::weak_ptr>
  std::optional<bool> has_come_twice_;
  std::weak_ptr<PlannedGraph> planned_;
};

std::shared_ptr<SizeFamily> SizeFamilyOf(absl::Span<const TrieNode* const> calls, const std::vector<bool>& live);

}  // namespace torch_lazy::lazy
