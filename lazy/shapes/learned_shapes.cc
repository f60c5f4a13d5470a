// SPDX-License-Identifier: Apache-2.0
#include "lazy/shapes/learned_shapes.h"

#include <utility>

#include "base/flags.h"

namespace torch_lazy::lazy {
namespace {

// What the table has for the words, now or from now on.
template <typename Value>
Value& Remember(absl::flat_hash_map<Words, Value>* table, Words words, Value value) {
  if (static_cast<int64_t>(table->size()) >= base::Number(base::Option::kMaxKnownOps)) table->clear();
  return table->try_emplace(std::move(words), std::move(value)).first->second;
}

}  // namespace

std::optional<std::shared_ptr<const CallShape>> ShapesOfCalls::Find(const Words& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = shapes_.find(key);
  return found == shapes_.end() ? std::nullopt : std::make_optional(found->second);
}

void ShapesOfCalls::Add(Words key, std::shared_ptr<const CallShape> shape) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Remember(&shapes_, std::move(key), std::move(shape));
}

bool Belief::IsTested(const Words& alike) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return was_right_.contains(alike);
}

bool Belief::Holds(const Words& alike) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = was_right_.find(alike);
  return found != was_right_.end() && found->second;
}

void Belief::Test(Words alike, bool was_right) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Remember(&was_right_, std::move(alike), true) &= was_right;
}

LearnedShapes& Learned() {
  static LearnedShapes* const learned = new LearnedShapes;
  return *learned;
}

}  // namespace torch_lazy::lazy
