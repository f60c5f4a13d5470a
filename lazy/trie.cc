// SPDX-License-Identifier: Apache-2.0
#include "lazy/trie.h"

#include <cstring>

#include "absl/hash/hash.h"
#include "absl/types/span.h"
#include "lazy/entry.h"

namespace torch_lazy::lazy {
namespace {

bool Matches(const TrieNode& node, c10::ArrayRef<int64_t> words, c10::ArrayRef<int32_t> slots) {
  return node.words.size() == words.size() && node.operand_slots.size() == slots.size() &&
         std::memcmp(node.words.data(), words.data(), words.size() * sizeof(int64_t)) == 0 &&
         std::memcmp(node.operand_slots.data(), slots.data(), slots.size() * sizeof(int32_t)) == 0;
}

uint64_t HashOf(c10::ArrayRef<int64_t> words, c10::ArrayRef<int32_t> slots) {
  return absl::HashOf(absl::MakeConstSpan(words.data(), words.size()), absl::MakeConstSpan(slots.data(), slots.size()));
}

}  // namespace

TrieNode::TrieNode() = default;

TrieNode::~TrieNode() {
  for (auto& [hash, nodes] : children) {
    for (TrieNode* node : nodes) delete node;
  }
}

int32_t TrieNode::PlaceOfNumber(size_t arg) const {
  for (size_t i = 0; i < number_args.size(); ++i) {
    if (static_cast<size_t>(number_args[i]) == arg) return static_cast<int32_t>(first_number + i);
  }
  return -1;
}

TrieNode* TrieNode::Find(c10::ArrayRef<int64_t> call_words, c10::ArrayRef<int32_t> slots) {
  if (likely != nullptr && Matches(*likely, call_words, slots)) return likely;
  auto found = children.find(HashOf(call_words, slots));
  if (found == children.end()) return nullptr;
  for (TrieNode* node : found->second) {
    if (Matches(*node, call_words, slots)) return likely = node;
  }
  return nullptr;
}

TrieNode* TrieNode::Grow(const Op& child_op, c10::ArrayRef<int64_t> call_words, c10::ArrayRef<int32_t> slots) {
  TrieNode* node = new TrieNode;
  node->parent = this;
  node->op = &child_op;
  node->words.assign(call_words.begin(), call_words.end());
  node->words_hash = absl::HashOf(absl::MakeConstSpan(node->words));
  node->operand_slots.assign(slots.begin(), slots.end());
  node->depth = depth + 1;
  children[HashOf(call_words, slots)].push_back(node);
  return likely = node;
}

}  // namespace torch_lazy::lazy
