// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace/trie.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/types/span.h"

namespace torch_lazy::lazy {
namespace {

bool Matches(const TrieNode& node, c10::ArrayRef<int64_t> words, c10::ArrayRef<int32_t> slots) {
  return node.words() == words && node.operand_slots() == slots;
}

constexpr size_t kStepsOfTail = 3;  // that have ended with it before it ends them all

uint64_t hash_bits = ~uint64_t{0};

uint64_t HashOf(c10::ArrayRef<int64_t> words, c10::ArrayRef<int32_t> slots) {
  return hash_bits &
         absl::HashOf(absl::MakeConstSpan(words.data(), words.size()), absl::MakeConstSpan(slots.data(), slots.size()));
}

}  // namespace

TrieNode::TrieNode(Trie* of, Expected* its) : trie(*of), expected(its) { its->node = this; }

std::vector<int32_t> TrieNode::DistinctSlots() const {
  std::vector<int32_t> slots;
  for (const NodeOperand& operand : operands) {
    if (std::find(slots.begin(), slots.end(), operand.slot) == slots.end()) slots.push_back(operand.slot);
  }
  return slots;
}

int32_t TrieNode::PlaceOfNumber(size_t arg) const {
  for (size_t i = 0; i < number_args.size(); ++i) {
    if (static_cast<size_t>(number_args[i]) == arg) return static_cast<int32_t>(expected->first_number + i);
  }
  return -1;
}

void TrieNode::LimitHashes(int num_bits) { hash_bits = (uint64_t{1} << num_bits) - 1; }

TrieNode* TrieNode::Find(c10::ArrayRef<int64_t> call_words, c10::ArrayRef<int32_t> slots) {
  if (expected->likely != nullptr && Matches(*expected->likely->node, call_words, slots)) return expected->likely->node;
  auto found = children.find(HashOf(call_words, slots));
  if (found == children.end()) return nullptr;
  for (TrieNode* node : found->second) {
    if (!Matches(*node, call_words, slots)) continue;
    expected->likely = node->expected;
    return node;
  }
  return nullptr;
}

const TrieNode* TrieNode::Nearest(const Op& call_op, c10::ArrayRef<int64_t> call_words) const {
  constexpr size_t kMaxSeen = 256;
  const TrieNode* nearest = expected->likely != nullptr ? expected->likely->node : nullptr;
  const auto in_common = [&](const TrieNode* node) {
    if (node == nullptr || node->op != &call_op) return size_t{0};
    size_t same = 1;
    for (size_t i = 0; i < std::min(call_words.size(), node->words().size()); ++i)
      same += call_words[i] == node->words()[i];
    return same;
  };
  size_t most = in_common(nearest), seen = 0;
  for (const auto& [hash, nodes] : children) {
    if (++seen > kMaxSeen) break;
    for (const TrieNode* node : nodes) {
      const size_t same = in_common(node);
      // Of equals, always the same one, whatever the order in the table.
      if (same < most || same == 0) continue;
      if (same == most && !std::ranges::lexicographical_compare(node->words(), nearest->words())) continue;
      most = same;
      nearest = node;
    }
  }
  return nearest;
}

TrieNode* TrieNode::Grow(const Op& child_op, c10::ArrayRef<int64_t> call_words, c10::ArrayRef<int32_t> slots,
                         std::shared_ptr<const CallShape> child_shape, size_t first_number) {
  TrieNode* node = trie.NewNode(call_words, slots);
  node->parent = this;
  node->op = node->expected->op = &child_op;
  node->shape = std::move(child_shape);
  node->expected->shape = node->shape.get();
  node->expected->first_number = static_cast<uint32_t>(first_number);
  node->words_hash = absl::HashOf(absl::MakeConstSpan(call_words.data(), call_words.size()));
  node->depth = depth + 1;
  node->alike_hash = absl::HashOf(&child_op);
  for (const int64_t word : call_words) node->alike_hash = absl::HashOf(node->alike_hash, WithoutSize(word));
  node->path_alike = absl::HashOf(path_alike, node->alike_hash, absl::MakeConstSpan(slots.data(), slots.size()));
  if (const auto end = trie.ends_.find(node->path_alike); end != trie.ends_.end()) trie.MarkLike(end->second, node);
  children[HashOf(call_words, slots)].push_back(node);
  expected->likely = node->expected;
  return node;
}

Trie::Trie() {
  NewNode({}, {});
  NewNode({}, {});
}

void* Trie::FromStream(size_t size_bytes) {
  constexpr size_t kChunk = size_t{1} << 18;
  size_bytes = (size_bytes + alignof(Expected) - 1) / alignof(Expected) * alignof(Expected);
  if (static_cast<size_t>(end_ - next_) < size_bytes) {
    const size_t chunk = std::max(kChunk, size_bytes);
    chunks_.emplace_back(new char[chunk]);
    next_ = chunks_.back().get();
    end_ = next_ + chunk;
  }
  return std::exchange(next_, next_ + size_bytes);
}

TrieNode* Trie::NewNode(c10::ArrayRef<int64_t> words, c10::ArrayRef<int32_t> slots) {
  static_assert(std::is_trivially_destructible_v<Expected>);
  static_assert(kMostOperands <= std::numeric_limits<uint16_t>::max());
  char* memory = static_cast<char*>(
      FromStream(sizeof(Expected) + words.size() * sizeof(int64_t) + slots.size() * sizeof(int32_t)));
  Expected* expected = new (memory) Expected;
  expected->num_words = static_cast<uint32_t>(words.size());
  expected->num_slots = static_cast<uint16_t>(slots.size());
  memory += sizeof(Expected);
  std::uninitialized_copy(words.begin(), words.end(), reinterpret_cast<int64_t*>(memory));
  memory += words.size() * sizeof(int64_t);
  std::uninitialized_copy(slots.begin(), slots.end(), reinterpret_cast<int32_t*>(memory));
  return &nodes_.emplace_back(this, expected);
}

TrieNode* Trie::NewSequel(const TrieNode& last) {
  TrieNode* const sequel = NewNode({}, {});
  sequel->path_alike = absl::HashOf(last.path_alike, "sequel");
  return sequel;
}

void Trie::MarkLike(const End& end, TrieNode* node) {
  if (end.ends_trace && !node->expected->closes_step) MarkStep(node->expected);
  if (end.sequel != nullptr) node->sequel = end.sequel;
  if (end.is_part) node->waits = TrieNode::kIsPart;
}

void Trie::RememberPart(TrieNode* node, bool is_last) {
  const auto [end, is_new] = ends_.try_emplace(node->path_alike);
  if (is_new) end->second = {true, is_last ? nullptr : NewSequel(*node), !is_last};
  MarkLike(end->second, node);
}

void Trie::NoteTail(uint64_t tail, Expected* end) {
  std::vector<Expected*>& ends = tails_[tail];
  if (ends.size() < kStepsOfTail) ends.push_back(end);
  if (ends.size() < kStepsOfTail) return;
  ends.back() = end;
  for (Expected* const call : ends) {
    if (!call->closes_step) MarkStep(call);
  }
}

bool Trie::IsTail(uint64_t tail) const {
  const auto found = tails_.find(tail);
  return found != tails_.end() && found->second.size() >= kStepsOfTail;
}

std::shared_ptr<Trie>& CurrentTrie() {
  static auto* const trie = new std::shared_ptr<Trie>;
  return *trie;
}

}  // namespace torch_lazy::lazy
