// SPDX-License-Identifier: Apache-2.0
// When a thread's traces are cut into chunks, and where these end.
#include "lazy/trace/chunks.h"

#include <random>

#include "lazy/trace/at_once.h"
#include "lazy/trace/trace.h"
#include "test/lazy/recording.h"

namespace torch_lazy::lazy {
namespace {

constexpr size_t kCalls = 1000;

TEST(Chunks, LongTracesAreNewInARow) {
  Chunks chunks;
  for (int k = 0; k < 5; ++k) chunks.Ran(kCalls, /*is_new=*/true, /*is_unknown=*/false);
  EXPECT_FALSE(chunks.is_on());
  chunks.Ran(kCalls, /*is_new=*/true, /*is_unknown=*/false);
  EXPECT_TRUE(chunks.is_on());
}

// One model after the other, each trained for few steps: the first steps of each are new, and the others known.
TEST(Chunks, WhatIsNewAndComesAgainIsLeftWhole) {
  Chunks chunks;
  for (int k = 0; k < 300; ++k) {
    chunks.Ran(kCalls, /*is_new=*/k % 4 != 3, /*is_unknown=*/false);
    EXPECT_FALSE(chunks.is_on()) << k;
  }
}

TEST(Chunks, ShortTracesDoNotCount) {
  Chunks chunks;
  for (int k = 0; k < 100; ++k) chunks.Ran(Chunks::kLong - 1, /*is_new=*/true, /*is_unknown=*/false);
  EXPECT_FALSE(chunks.is_on());
}

// How many chunks of 100 calls it takes until whole traces are tried again.
int RunAll(Chunks* chunks) {
  int count = 0;
  for (; chunks->is_on(); ++count) chunks->Ran(100, /*is_new=*/false, /*is_unknown=*/false);
  return count;
}

TEST(Chunks, WholeTracesAreTriedAgainAfterTwiceAsLong) {
  Chunks chunks;
  for (int k = 0; k < 6; ++k) chunks.Ran(kCalls, /*is_new=*/true, /*is_unknown=*/false);
  const int first = RunAll(&chunks);
  EXPECT_EQ(first, (Chunks::kFirstCalls + 99) / 100);
  for (int k = 0; k < 2; ++k) chunks.Ran(kCalls, /*is_new=*/true, /*is_unknown=*/false);
  EXPECT_FALSE(chunks.is_on());
  chunks.Ran(kCalls, /*is_new=*/true, /*is_unknown=*/false);
  ASSERT_TRUE(chunks.is_on());
  EXPECT_EQ(RunAll(&chunks), (2 * Chunks::kFirstCalls + 99) / 100);
}

TEST(Chunks, WholeTracesThatAreKnownStay) {
  Chunks chunks;
  for (int k = 0; k < 6; ++k) chunks.Ran(kCalls, /*is_new=*/true, /*is_unknown=*/false);
  RunAll(&chunks);
  for (int k = 0; k < 100; ++k) chunks.Ran(kCalls, /*is_new=*/k % 4 == 0, /*is_unknown=*/false);
  EXPECT_FALSE(chunks.is_on());
}

// True if chunks end as too many that were unknown. `every`: one of so many is.
bool EndAsUnknown(int every) {
  Chunks chunks;
  for (int k = 0; k < 6; ++k) chunks.Ran(kCalls, /*is_new=*/true, /*is_unknown=*/true);
  bool ended = false;
  for (int k = 0; chunks.is_on(); ++k) ended = chunks.Ran(100, /*is_new=*/false, /*is_unknown=*/k % every == 0);
  return ended;
}

TEST(Chunks, ThatStayUnknownEnd) {
  EXPECT_TRUE(EndAsUnknown(15));
  EXPECT_FALSE(EndAsUnknown(17));
}

// Calls run at once instead, for longer each time, and two traces are recorded in between.
TEST(Chunks, CallsAtOnceTakeTheirPlace) {
  AtOnce at_once;
  EXPECT_FALSE(at_once.are_new());
  at_once.StartForNew();
  for (const int64_t calls : {AtOnce::kMostCalls, 2 * AtOnce::kMostCalls, 4 * AtOnce::kMostCalls}) {
    EXPECT_TRUE(at_once.is_on() && at_once.are_new());
    for (int64_t k = 1; k < calls; ++k) {
      at_once.Call();
      at_once.Wait();
      ASSERT_TRUE(at_once.is_on()) << k;
    }
    at_once.Call();
    at_once.Wait();
    EXPECT_TRUE(!at_once.is_on() && at_once.are_new());
    EXPECT_FALSE(at_once.Ran(kCalls, /*op_by_op=*/true, /*waited=*/true, /*is_new=*/true));
    EXPECT_TRUE(at_once.Ran(kCalls, /*op_by_op=*/true, /*waited=*/true, /*is_new=*/true));
    at_once.Start();
  }
  EXPECT_FALSE(at_once.Ran(kCalls, /*op_by_op=*/false, /*waited=*/true, /*is_new=*/false));
  EXPECT_FALSE(at_once.are_new());
}

class Calls {
 public:
  void Add(const char* op) {
    at_ = at_->Grow(OpNamed(op, "Tensor"), {static_cast<int64_t>(calls_.size())}, {}, std::make_shared<CallShape>(), 0);
    calls_.push_back(at_);
    if (Chunks::EndHere(calls_)) NextChunk();
  }
  void NextChunk() {
    if (!calls_.empty()) lengths_.push_back(calls_.size());
    calls_.clear();
    at_ = trie_.root();
  }
  const std::vector<size_t>& lengths() const { return lengths_; }

 private:
  Trie trie_;
  TrieNode* at_ = trie_.root();
  std::vector<TrieNode*> calls_;
  std::vector<size_t> lengths_;
};

std::vector<const char*> RandomCalls(unsigned seed, int count) {
  constexpr const char* kNames[] = {"aten::add", "aten::mul", "aten::sub", "aten::div",
                                    "aten::gt",  "aten::eq",  "aten::lt"};
  std::mt19937 engine(seed);
  std::vector<const char*> calls;
  for (int k = 0; k < count; ++k) calls.push_back(kNames[engine() % std::size(kNames)]);
  return calls;
}

// Whatever came before, the same run of calls is soon cut at the same places.
TEST(Chunks, EqualRunsAreCutEqually) {
  const std::vector<const char*> same = RandomCalls(0, 400);
  std::vector<std::vector<size_t>> lengths;
  for (const unsigned seed : {1U, 2U, 3U}) {
    Calls calls;
    for (const char* call : RandomCalls(seed, 50 + static_cast<int>(seed))) calls.Add(call);
    for (const char* call : same) calls.Add(call);
    lengths.emplace_back(calls.lengths().end() - 8, calls.lengths().end());
  }
  EXPECT_EQ(lengths[0], lengths[1]);
  EXPECT_EQ(lengths[0], lengths[2]);
}

TEST(Chunks, AreNeitherTinyNorHuge) {
  Calls random, equal;
  for (const char* call : RandomCalls(4, 4000)) random.Add(call);
  for (int k = 0; k < 1000; ++k) equal.Add("aten::add");
  for (const Calls* calls : {&random, &equal}) {
    ASSERT_FALSE(calls->lengths().empty());
    for (const size_t length : calls->lengths()) {
      EXPECT_GE(length, Chunks::kLeast);
      EXPECT_LE(length, Chunks::kMost);
    }
  }
}

}  // namespace
}  // namespace torch_lazy::lazy
