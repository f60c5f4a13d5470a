// SPDX-License-Identifier: Apache-2.0
// Finding where a step of a program's loop ends, without being told.
//
// A step has closed when the last P calls repeat the P before, each operand being the same storage in both periods or
// one made equally long before, and some storage is written in both. Layers, time steps and an optimizer's loop over
// parameters do not qualify: each writes storages of its own. A loop's calls repeat wherever one begins to count, so a
// step ends where it hands over few bytes: after the optimizer, and not amid a backward pass. Of places with as few, it
// ends behind the update that the most calls without one follow, where the program's own loop is likely to begin: so
// steps that were found begin where those do that follow a wait. Where there is no such row of calls, as in a loop of
// updates alone, it ends where it was found. A trace that turns out to hold several steps runs as so many; the node
// where a step ends is marked, and later traces that reach it are cut there. Those are cut when the next call comes,
// not at once: by then the last call's temporaries are dead, and what nobody can find is not stored.
//
// Where no calls repeat exactly, those of other sizes may: a loop over texts of any length has such steps. Minibatches
// that lie at other places of one tensor are as large as each other, and no steps. A node that is new, and like one
// where a step ends, is marked at once (Trie::RememberStep).
//
// Note [Pure steps]: a loop that only computes (inference over batches whose results are collected) writes nothing
// older and runs where somebody waits. A GPU would idle until then, so such loops have steps, too: nothing flows from
// one period to the next, and of the results of the period before some are still held, but at most half of the bytes,
// so that it is no forward pass whose backward pass comes later. A period has large results or many calls; of shorter
// ones, several are one. A launch leaves a GPU half empty while its last blocks run. Where steps share launches
// (Entry::shares_launches), each trace holds four times as many as the one before, for whose time they are recorded:
// until somebody waits, or there are as many as share one.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lazy/trace/slot.h"
#include "lazy/trace/trie.h"

namespace torch_lazy::lazy {

struct ClosedStep {
  size_t period = 0;  // calls; 0: no step has closed
  bool is_pure = false;
};

class StepDetector {
 public:
  using Calls = std::vector<TrieNode*>;
  using Slots = std::vector<TraceSlot>;

  // Takes note of a trace's calls up to its newest. Returns the step that has just closed, if one has.
  ClosedStep Advance(const Calls& calls, const Slots& slots);

 private:
  // What the call does and which slots it writes; 0 if it writes none of its operands.
  static uint64_t WriteSignature(const TrieNode& call);
  enum class Likeness { kEqual, kAlike };  // but for sizes
  // Polynomial hashes of the calls before each.
  struct Hashes {
    std::vector<uint64_t> before = {0};
    uint64_t OfRange(size_t begin, size_t end, const std::vector<uint64_t>& power) const {
      return before[end] - before[begin] * power[end - begin];
    }
  };
  static bool AreLike(const TrieNode& one, const TrieNode& other, Likeness likeness);
  // The last so many calls repeat those before. `on_the_same`: and most operands from before are the same in both.
  bool IsPeriod(const Calls& calls, const Slots& slots, size_t period, bool on_the_same, Likeness likeness) const;
  // Of the steps that repeat up to the newest call, which writes an operand; 0: none do.
  size_t PeriodOfUpdates(const Calls& calls, const Slots& slots, Likeness likeness) const;
  // How many calls after the newest a step had better end. 0: here.
  static size_t CallsToBestEnd(const Calls& calls, const Slots& slots, size_t period);
  size_t PeriodThatEndsHere(const Calls& calls, const Slots& slots);
  static bool Repeats(const Calls& calls, const Slots& slots, size_t period, bool on_the_same, Likeness likeness);
  // Note [Pure steps]
  void NoteRepeat(size_t call, uint64_t words_hash);
  size_t PeriodOfPureSteps(const Calls& calls, const Slots& slots) const;
  bool HasPureSteps(const Calls& calls, const Slots& slots, size_t period, size_t least_bytes) const;
  static bool RepeatsPurely(const Calls& calls, const Slots& slots, size_t period);
  bool HashesRepeat(size_t end, size_t period, const Hashes& hashes) const {
    return hashes.OfRange(end - period, end, power_) == hashes.OfRange(end - 2 * period, end - period, power_);
  }

  Hashes equal_, alike_;
  std::vector<uint64_t> power_ = {1};
  absl::flat_hash_map<uint64_t, size_t> last_write_;  // signature of a call -> its place
  std::vector<size_t> same_write_;                    // per call: the place of the last such write before, or its own
  absl::flat_hash_map<uint64_t, size_t> last_call_;   // hash of its words -> its place
  size_t awaited_end_ = SIZE_MAX;                     // the number of calls at which a step shall close; SIZE_MAX: any
  size_t awaited_period_ = 0;
  Likeness awaited_likeness_ = Likeness::kEqual;
  size_t repeated_ = 0;  // > 0: so many calls had just repeated those before, newest finding
};

}  // namespace torch_lazy::lazy
