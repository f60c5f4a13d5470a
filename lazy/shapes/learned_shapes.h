// SPDX-License-Identifier: Apache-2.0
// What calls that ran have taught: the geometry of their results, and which rules and Meta kernels are to be believed.
//
// All threads share it. A table that is full (option max_known_ops) forgets everything: it is learned again.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "lazy/shapes/likeness.h"
#include "lazy/trace/trie.h"

namespace torch_lazy::lazy {

// The shape of each call that is known (KeyOf); null if it ran, and nothing could be learned from it.
class ShapesOfCalls {
 public:
  std::optional<std::shared_ptr<const CallShape>> Find(const Words& key);
  void Add(Words key, std::shared_ptr<const CallShape> shape);

 private:
  std::mutex mutex_;
  absl::flat_hash_map<Words, std::shared_ptr<const CallShape>> shapes_;
};

// Whether a way to ask for shapes has been right of all calls that are alike.
class Belief {
 public:
  bool IsTested(const Words& alike);
  bool Holds(const Words& alike);  // false as well if it was never tested
  void Test(Words alike, bool was_right);

 private:
  std::mutex mutex_;
  absl::flat_hash_map<Words, bool> was_right_;
};

struct LearnedShapes {
  ShapesOfCalls of_calls;
  Belief in_rules;         // by KindOf
  Belief in_meta_kernels;  // by ProofOf
};
LearnedShapes& Learned();

}  // namespace torch_lazy::lazy
