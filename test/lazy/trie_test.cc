// SPDX-License-Identifier: Apache-2.0
// What the trie finds, what it keeps of a call, and what it predicts. Hashes of few bits must not be seen.
#include "lazy/trace/trie.h"

#include <cstdint>
#include <map>
#include <memory>
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

std::shared_ptr<CallShape> NoResults() { return std::make_shared<CallShape>(); }

TEST(Trie, ANewNodeKnowsItsPlace) {
  Trie trie;
  const auto shape = NoResults();
  TrieNode* const first = trie.root()->Grow(AnyOp(), {7, 8}, {0, 1}, shape, 0);
  TrieNode* const second = first->Grow(AnyOp(), {9}, {1}, shape, 3);
  EXPECT_EQ(trie.num_calls(), 2);
  EXPECT_EQ(trie.root()->depth, 0);
  EXPECT_EQ(second->depth, 2);
  EXPECT_EQ(second->parent, first);
  EXPECT_EQ(second->op, &AnyOp());
  EXPECT_EQ(second->words(), (std::vector<int64_t>{9}));
  EXPECT_EQ(first->operand_slots(), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(second->expected->first_number, 3);
  EXPECT_EQ(second->expected->shape, shape.get());
  EXPECT_EQ(second->expected->node, second);
}

TEST(Trie, TheChildTakenLastIsLikely) {
  Trie trie;
  EXPECT_EQ(trie.root()->expected->likely, nullptr);
  TrieNode* const one = trie.root()->Grow(AnyOp(), {1}, {0}, NoResults(), 0);
  EXPECT_EQ(trie.root()->expected->likely, one->expected);
  TrieNode* const two = trie.root()->Grow(AnyOp(), {2}, {0}, NoResults(), 0);
  EXPECT_EQ(trie.root()->expected->likely, two->expected);
  EXPECT_EQ(trie.root()->Find({1}, {0}), one);
  EXPECT_EQ(trie.root()->expected->likely, one->expected);
  EXPECT_EQ(trie.root()->Find({3}, {0}), nullptr);
  EXPECT_EQ(trie.root()->expected->likely, one->expected);
}

TEST(Trie, TheNearestChildHasTheOperatorAndMostWords) {
  const Op& other = OpOf(c10::Dispatcher::singleton().findSchemaOrThrow("aten::mul", "Tensor"));
  Trie trie;
  TrieNode* const far = trie.root()->Grow(AnyOp(), {1, 0, 0}, {0}, NoResults(), 0);
  TrieNode* const near = trie.root()->Grow(AnyOp(), {1, 2, 0}, {0}, NoResults(), 0);
  TrieNode* const unlike = trie.root()->Grow(other, {1, 2, 3}, {0}, NoResults(), 0);
  EXPECT_EQ(trie.root()->Nearest(AnyOp(), {1, 2, 3}), near);
  EXPECT_EQ(trie.root()->Nearest(AnyOp(), {1, 0, 3}), far);
  EXPECT_EQ(trie.root()->Nearest(other, {9, 9, 9}), unlike);
  // Of an operator that was never called there: the child taken last.
  trie.root()->Find({1, 0, 0}, {0});
  const Op& third = OpOf(c10::Dispatcher::singleton().findSchemaOrThrow("aten::sub", "Tensor"));
  EXPECT_EQ(trie.root()->Nearest(third, {1, 2, 3}), far);
}

TEST(Trie, OperandsOfOneSlotAreOneInput) {
  Trie trie;
  TrieNode* const call = trie.root()->Grow(AnyOp(), {1}, {4, 2, 4}, NoResults(), 0);
  for (const int32_t slot : {4, 2, 4}) call->operands.push_back({slot, -1, 0, false, {}});
  EXPECT_EQ(call->DistinctSlots(), (std::vector<int32_t>{4, 2}));
}

TEST(Trie, NumbersTakeConsecutivePlaces) {
  Trie trie;
  TrieNode* const call = trie.root()->Grow(AnyOp(), {1}, {0}, NoResults(), 5);
  call->number_args = {1, 3};
  EXPECT_EQ(call->PlaceOfNumber(1), 5);
  EXPECT_EQ(call->PlaceOfNumber(3), 6);
  EXPECT_EQ(call->PlaceOfNumber(2), -1);
}

TEST(Trie, AMarkEndsTraces) {
  Trie trie;
  Expected* const step = trie.root()->Grow(AnyOp(), {1}, {0}, NoResults(), 0)->expected;
  Expected* const two_steps = trie.root()->Grow(AnyOp(), {2}, {0}, NoResults(), 0)->expected;
  EXPECT_FALSE(step->ends_trace());
  EXPECT_EQ(trie.num_marks(), 0);
  trie.MarkStep(step);
  trie.MarkStep(two_steps, 4);
  EXPECT_EQ(trie.num_marks(), 2);
  EXPECT_TRUE(step->ends_trace() && step->closes_step);
  EXPECT_TRUE(two_steps->ends_trace() && !two_steps->closes_step);
  EXPECT_EQ(two_steps->period, 4);
}

// 100 and 70 are sizes; 1 and 2 are not.
TEST(Trie, NewNodesLikeTheEndOfAStepEndTracesToo) {
  Trie trie;
  const auto grow = [&](int64_t word, int64_t size, int32_t slot) {
    return trie.root()->Grow(AnyOp(), {word, size}, {slot}, NoResults(), 0)->Grow(AnyOp(), {0}, {0}, NoResults(), 0);
  };
  TrieNode* const end = grow(1, 100, 0);
  const TrieNode* const before = grow(1, 50, 0);
  trie.RememberStep(*end);
  EXPECT_TRUE(grow(1, 70, 0)->expected->closes_step);
  EXPECT_FALSE(grow(2, 70, 0)->expected->closes_step);
  EXPECT_FALSE(grow(1, 70, 1)->expected->closes_step);
  EXPECT_FALSE(before->expected->closes_step);  // it was there
  EXPECT_FALSE(end->parent->expected->closes_step);
  EXPECT_EQ(trie.num_marks(), 1);
}

TEST(Trie, ATailThatHasEndedThreeStepsEndsThemAll) {
  Trie trie;
  TrieNode* const one = trie.root()->Grow(AnyOp(), {{1}}, {{0}}, NoResults(), 0);
  TrieNode* const two = one->Grow(AnyOp(), {{2}}, {{0}}, NoResults(), 0);
  TrieNode* const other = two->Grow(AnyOp(), {{3}}, {{0}}, NoResults(), 0);
  constexpr uint64_t kTail = 5, kOther = 6;
  EXPECT_FALSE(trie.HasTails());
  trie.NoteTail(kTail, one->expected);
  trie.NoteTail(kTail, one->expected);
  trie.NoteTail(kOther, other->expected);
  EXPECT_TRUE(trie.HasTails());
  EXPECT_FALSE(trie.IsTail(kTail));
  EXPECT_FALSE(one->expected->closes_step);
  trie.NoteTail(kTail, two->expected);
  EXPECT_TRUE(trie.IsTail(kTail));
  EXPECT_TRUE(one->expected->closes_step);
  EXPECT_TRUE(two->expected->closes_step);
  EXPECT_FALSE(trie.IsTail(kOther));
  EXPECT_FALSE(other->expected->closes_step);
}

// Words and slots lie behind one another in chunks; one call may need more than a chunk.
TEST(Trie, CallsOfAnyLengthAreKeptWhole) {
  Trie trie;
  TrieNode* at = trie.root();
  std::vector<std::pair<std::vector<int64_t>, std::vector<int32_t>>> calls;
  for (const size_t words : {1, 40'000, 3, 20'000, 20'000, 2}) {
    auto& [call_words, slots] = calls.emplace_back();
    call_words.assign(words, static_cast<int64_t>(calls.size()));
    slots.assign(1 + words % 7, static_cast<int32_t>(calls.size()));
    at = at->Grow(AnyOp(), call_words, slots, NoResults(), 0);
  }
  for (size_t k = calls.size(); k-- > 0; at = at->parent) {
    EXPECT_EQ(at->words(), calls[k].first);
    EXPECT_EQ(at->operand_slots(), calls[k].second);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(at->expected) % alignof(Expected), 0);
  }
}

}  // namespace
}  // namespace torch_lazy::lazy
