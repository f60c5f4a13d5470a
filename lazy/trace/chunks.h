// SPDX-License-Identifier: Apache-2.0
// Cutting traces that are new each time at places that come again.
//
// Note [Chunks]
// A mixture of experts has other experts at work in each step, and a recurrent loop has sentences of other lengths. As
// a whole, the calls of such a step have never come together before, so a plan would be made for nothing. Its parts
// have: an expert, a layer, a time step. So a thread whose last long traces were all new lets the calls themselves tell
// where to cut, as programs do that look for equal parts in files (content-defined chunking): where a hash of the last
// three operators has some zero bits. Equal runs of calls are cut equally, wherever they stand, so that most chunks are
// known soon, and have kernels. After a number of calls that doubles each time, a few traces are left whole again, to
// see whether these are known by now.
//
// New is what has new operators, or hands its values on differently. New sizes are not new.
//
// Chunks may go on being unknown to the trie, where sizes and places are other ones each time: an LSTM of a packed
// batch goes on with fewer texts after each that ends. What is unknown is recorded the long way, and lowered or
// interpreted. Where calls are small, kernels of the others do not pay for that, so the thread's calls run at once then
// (at_once.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "lazy/trace/trie.h"

namespace torch_lazy::lazy {

// Of one thread; a trace hands it on to the next.
class Chunks {
 public:
  static constexpr size_t kLong = 256;  // calls of a trace that had better be cut if it is new
  static constexpr int kNew = 6;        // so many new ones in a row begin it ...
  static constexpr int kAgain = 3;      // ... and so many once whole traces have been tried again
  static constexpr size_t kLeast = 16;  // calls of a chunk
  static constexpr size_t kMost = 128;
  static constexpr uint64_t kMask = 15;  // one place of so many and one, on average
  static constexpr int64_t kFirstCalls = 1 << 14;
  static constexpr int64_t kMostCalls = 1 << 22;
  static constexpr int64_t kMostUnknown = 16;  // one of so many
  static constexpr int64_t kSmall = 64 << 10;  // bytes of results a call

  bool is_on() const { return is_on_; }

  // A trace of so many calls was run, which were new together or not. `is_unknown`: to the trie. True if chunks end
  // now, too many of which were unknown.
  bool Ran(size_t num_calls, bool is_new, bool is_unknown) {
    if (is_on_) {
      ++traces_;
      unknown_ += is_unknown;
      calls_left_ -= static_cast<int64_t>(num_calls);
      if (calls_left_ > 0) return false;
      Stop();
      return kMostUnknown * unknown_ > traces_;
    } else if (num_calls >= kLong) {
      new_in_a_row_ = is_new ? new_in_a_row_ + 1 : 0;
      if (new_in_a_row_ >= wanted_) Start();
    }
    return false;
  }

  // True if a chunk ends with the newest of a trace's calls.
  static bool EndHere(const std::vector<TrieNode*>& calls) {
    const size_t n = calls.size();
    if (n < kLeast) return false;
    if (n >= kMost) return true;
    constexpr uint64_t kTimes = 0x9e3779b97f4a7c15u;
    uint64_t hash = 0;
    for (size_t k = n - 3; k < n; ++k) hash = (hash ^ calls[k]->op->name_hash) * kTimes;
    return (hash >> 32 & kMask) == 0;
  }

 private:
  void Start() {
    is_on_ = true;
    traces_ = unknown_ = 0;
    calls_left_ = std::exchange(next_calls_, std::min(2 * next_calls_, kMostCalls));
  }
  void Stop() {
    is_on_ = false;
    new_in_a_row_ = 0;
    wanted_ = kAgain;
  }

  bool is_on_ = false;
  int new_in_a_row_ = 0;
  int wanted_ = kNew;
  int64_t calls_left_ = 0;
  int64_t next_calls_ = kFirstCalls;
  int64_t traces_ = 0, unknown_ = 0;  // since it is on
};

}  // namespace torch_lazy::lazy
