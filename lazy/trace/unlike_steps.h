// SPDX-License-Identifier: Apache-2.0
// Where steps end that are not alike.
//
// Note [Unlike steps]
// A loop adds up the gradients of four batches before an update, then of two; or it logs at each tenth step, and flips
// one image in two. No two of its steps in a row repeat each other, so the step detector finds none. But each reads
// weights that the one before has updated. So a step has ended where a call reads a storage again, as an equal call did
// before, and a call in between has updated that storage after it was read. It ended behind one of these updates: of
// those where nearly the fewest bytes are handed over, the last. A function that is replayed is not left amid: a
// decoder's layers update their caches one after the other, and each of these updates looks like an end. Statistics
// that a forward pass updates are no such storages, since nobody else reads them; nor are gradients that add up.
//
// Each end has a *tail*: the last calls, and the last storage that the update wrote. A loop whose steps are alike is
// left to the step detector, which finds its steps sooner than a tail is seen amid three new traces. From then on the
// tail ends a step wherever it comes, also where it was seen before. Traces that come again as they are stay whole: a
// GAN's iteration updates the critic, reads it again, and is best run as one.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lazy/trace/slot.h"
#include "lazy/trace/trie.h"

namespace torch_lazy::lazy {

class UnlikeSteps {
 public:
  using Calls = std::vector<TrieNode*>;
  using Slots = std::vector<TraceSlot>;
  struct Range {  // of calls
    size_t begin, end;
  };
  static constexpr size_t kFewestCalls = 16;  // of a step

  // Takes note of a trace's calls up to its newest. If that tells that a step has ended, after how many calls; else 0.
  // `whole`: calls, perhaps still to come, amid which none ends.
  size_t Advance(const Calls& calls, const Slots& slots, const std::vector<Range>& whole);

  // Of a trace's first `end` calls: equal ones end the same step, whatever came before. 0 if the last is no update.
  static uint64_t Tail(const Calls& calls, const Slots& slots, size_t end);

 private:
  struct Use {
    size_t first_read;
    size_t last_update = 0;  // after it; 0: none
  };
  // Takes note of a call. The place of the call that it repeats, if it tells that a step has ended; else its own.
  size_t Note(const Calls& calls, const Slots& slots, size_t call);
  size_t BestEnd(const Calls& calls, const Slots& slots, const std::vector<Range>& whole, size_t begin,
                 size_t end) const;

  size_t seen_ = 0;        // calls
  size_t newest_end_ = 0;  // of a step
  // Since that end:
  absl::flat_hash_map<int32_t, Use> uses_;                           // by slot, of storages that calls only read
  absl::flat_hash_map<std::pair<int32_t, uint64_t>, size_t> reads_;  // by slot and kind of call: the first
};

}  // namespace torch_lazy::lazy
