// SPDX-License-Identifier: Apache-2.0
// The trie finds a trace only if it is equal word for word, however few bits its hashes have.
#include "lazy/trace/trie.h"

#include <map>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace torch_lazy::lazy {
namespace {

constexpr int kHashBits = 8;
constexpr int kTraces = 2000;
constexpr int kMutations = 500;  // of each
constexpr int kCalls = 6;

struct Call {
  std::vector<int64_t> words;
  std::vector<int32_t> slots;
  friend auto operator<=>(const Call&, const Call&) = default;
};
using Calls = std::vector<Call>;

const Op& AnyOp() { return OpOf(c10::Dispatcher::singleton().findSchemaOrThrow("aten::add", "Tensor")); }

class Random {
 public:
  int64_t Below(int64_t end) { return std::uniform_int_distribution<int64_t>(0, end - 1)(engine_); }

  // Few words, slots and values, so that traces have much in common.
  Call AnyCall() {
    Call call;
    call.words.resize(static_cast<size_t>(2 + Below(4)));
    for (int64_t& word : call.words) word = Below(3);
    call.slots.resize(static_cast<size_t>(1 + Below(2)));
    for (int32_t& slot : call.slots) slot = static_cast<int32_t>(Below(3));
    return call;
  }
  Calls Trace() {
    Calls calls(kCalls);
    for (Call& call : calls) call = AnyCall();
    return calls;
  }
  // One word, slot or length is another.
  Calls Mutated(Calls calls) {
    Call& call = calls[static_cast<size_t>(Below(kCalls))];
    switch (Below(4)) {
      case 0:
        call.words[static_cast<size_t>(Below(static_cast<int64_t>(call.words.size())))] += 1 + Below(2);
        break;
      case 1:
        call.slots[static_cast<size_t>(Below(static_cast<int64_t>(call.slots.size())))] += 1;
        break;
      case 2:
        call.words.push_back(0);
        break;
      default:
        call.slots.push_back(0);
        break;
    }
    return calls;
  }

 private:
  std::mt19937_64 engine_{5};
};

// The node at the end of the calls, null if one of them is not known.
TrieNode* Walk(TrieNode* root, const Calls& calls) {
  TrieNode* node = root;
  for (size_t k = 0; node != nullptr && k < calls.size(); ++k) node = node->Find(calls[k].words, calls[k].slots);
  return node;
}

TrieNode* Grow(TrieNode* root, const Calls& calls) {
  TrieNode* node = root;
  for (const Call& call : calls) {
    TrieNode* next = node->Find(call.words, call.slots);
    node = next != nullptr ? next : node->Grow(AnyOp(), call.words, call.slots, std::make_shared<CallShape>(), 0);
  }
  return node;
}

TEST(Trie, NoOtherTraceIsTakenForAKnownOne) {
  TrieNode::LimitHashes(kHashBits);
  Trie trie;
  std::map<Calls, TrieNode*> known;
  Random random;
  for (int k = 0; k < kTraces; ++k) {
    const Calls calls = random.Trace();
    known[calls] = Grow(trie.root(), calls);
  }
  int found = 0, looked_up = 0;
  for (const auto& [calls, node] : known) {
    ASSERT_EQ(Walk(trie.root(), calls), node);
    for (int k = 0; k < kMutations; ++k) {
      const Calls mutated = random.Mutated(calls);
      const auto expected = known.find(mutated);
      ASSERT_EQ(Walk(trie.root(), mutated), expected == known.end() ? nullptr : expected->second);
      found += expected != known.end();
      ++looked_up;
    }
  }
  EXPECT_EQ(looked_up, 1'000'000);
  EXPECT_LT(found, looked_up / 100);
  TrieNode::LimitHashes(64 - 1);
}

}  // namespace
}  // namespace torch_lazy::lazy
