// SPDX-License-Identifier: Apache-2.0
// The trie of known traces: each node is a call seen at this place before.
//
// Walking it is the full comparison of two traces, and predicts the geometry of the next call's results. Nodes hold
// numbers, not symbols: graphs, which are free of sizes, are shared between paths by the plan cache (plans.h).
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include "absl/container/flat_hash_map.h"
#include "lazy/eager/geometry.h"
#include "lazy/host/source_line.h"
#include "lazy/ops/op.h"
#include "lazy/trace/trace_runner.h"

namespace torch_lazy::lazy {

class Trie;
struct TrieNode;

// A word of a call with one number for all that may be a size: calls that differ in sizes alone are alike. Dimensions
// and the numbers of choices are small; floating numbers are large.
constexpr int64_t WithoutSize(int64_t word) {
  constexpr int64_t kMostOfChoices = 3, kMostOfSizes = int64_t{1} << 40;
  return word > kMostOfChoices && word < kMostOfSizes ? kMostOfChoices + 1 : word;
}

// One returned tensor of a call.
struct ResultShape {
  int32_t item = -1;  // position in a returned list
  int16_t ret = 0;    // which return
  int16_t arg = -1;   // >= 0: it is this written argument itself
  bool defined = true;
  Geometry geometry;      // of a new tensor
  size_t size_bytes = 0;  // of its new storage

  friend bool operator==(const ResultShape&, const ResultShape&) = default;
};

// What a call returns, as far as geometry goes. Shared between nodes; never changes.
struct CallShape {
  std::vector<ResultShape> results;
  std::vector<int> list_sizes;  // per return: -1 for a tensor
};

// A call with more tensors runs at once: what recording and lowering ask about pairs of them would take seconds.
constexpr size_t kMostOperands = 1 << 13;

struct NodeOperand {
  int32_t slot;
  int32_t item;  // position in a tensor list, -1 for a tensor argument
  int16_t arg;
  bool written;
  Geometry geometry;
};

// The part of a node that recording a known call reads. A step's kernels leave little of the trie in the caches; these
// parts lie one after the other in the order in which calls were first made, so that a repeated step reads them as a
// stream.
struct Expected {
  const Op* op = nullptr;  // null at a root
  TrieNode* node = nullptr;
  Expected* likely = nullptr;        // of the child taken last
  const CallShape* shape = nullptr;  // the node's
  uint32_t period = 0;               // > 0: a trace up to here ends with two steps of so many calls
  uint32_t first_number = 0;         // run-time numbers take consecutive places of the trace's from here
  uint32_t num_words = 0;
  uint16_t num_slots = 0;
  bool closes_step = false;  // a repeated step was seen to end here
  bool is_pure = false;      // it, or the two of `period` calls, only compute: Note [Pure steps]

  bool ends_trace() const { return closes_step || period != 0; }
  // The words, then the operands' slots, follow in memory.
  const int64_t* words() const { return reinterpret_cast<const int64_t*>(this + 1); }
  const int32_t* slots() const { return reinterpret_cast<const int32_t*>(words() + num_words); }
};

struct TrieNode {
  Trie& trie;
  const Op* op = nullptr;  // null at a root
  Expected* expected;      // never null
  std::shared_ptr<const CallShape> shape;
  int32_t first_result_slot = 0;  // new results take consecutive slots from here
  int32_t update_end = -1;        // where a trace cut here is run in two parts (segments.h); -1: not asked yet
  int32_t depth = 0;              // calls from the root
  static constexpr int8_t kIsPart = -1;
  int8_t waits = 0;  // of the host for traces cut here, in a row; kIsPart: of one that was cut early (early_cuts.h)
  uint16_t short_parts = 0;  // how often the trace was to run in two parts of which one is short
  TrieNode* parent = nullptr;
  TrieNode* sequel = nullptr;  // a root of its own, for the trace after one that is cut here: Note [Early cuts]
  uint64_t words_hash = 0;
  uint64_t alike_hash = 0;                 // of the words without sizes
  uint64_t path_alike = 0;                 // of all calls up to here, with the slots of their operands
  std::shared_ptr<const SourceLine> line;  // where a call that may fail was first made; null: unknown
  std::vector<NodeOperand> operands;
  std::vector<c10::IValue> args;     // structure; tensors and run-time numbers are None, lists of tensors undefined
  std::vector<int16_t> number_args;  // the arguments that are run-time numbers, in order

  absl::flat_hash_map<uint64_t, c10::SmallVector<TrieNode*, 1>> children;  // by hash of words and slots
  std::vector<std::unique_ptr<TraceRunner>> entries;
  std::shared_ptr<SourceLine>
      line_asked_for;  // becomes the program's line that records the call the long way next; null: not asked for

  TrieNode(Trie* of, Expected* its);
  c10::ArrayRef<int64_t> words() const { return {expected->words(), expected->num_words}; }
  c10::ArrayRef<int32_t> operand_slots() const { return {expected->slots(), expected->num_slots}; }
  // Of the operands, each once, in the order of their first use: the order of a lowered call's inputs.
  std::vector<int32_t> DistinctSlots() const;
  // Where the trace's numbers hold argument `arg`; -1 if it is no run-time number.
  int32_t PlaceOfNumber(size_t arg) const;
  TrieNode* Find(c10::ArrayRef<int64_t> words, c10::ArrayRef<int32_t> slots);
  // The child that such a call resembles most: of the same operator, with the most words in common; else the one taken
  // last.
  const TrieNode* Nearest(const Op& op, c10::ArrayRef<int64_t> words) const;
  // For tests: from here on, the hashes by which children are found have so many bits.
  static void LimitHashes(int num_bits);
  // A new child. `first_number`: what the trace holds of them before the call.
  TrieNode* Grow(const Op& op, c10::ArrayRef<int64_t> words, c10::ArrayRef<int32_t> slots,
                 std::shared_ptr<const CallShape> shape, size_t first_number);
};

// Owns its nodes. The device lock guards it.
class Trie {
 public:
  Trie();
  Trie(const Trie&) = delete;
  Trie& operator=(const Trie&) = delete;

  TrieNode* root() { return &nodes_.front(); }
  // Where a thread is whose calls run at once: nothing is known to come next.
  TrieNode* nowhere() { return &nodes_[1]; }
  // Where a trace begins that follows one whose calls end with this node; null: one of no calls.
  TrieNode* RootAfter(const TrieNode* last) {
    return last != nullptr && last->sequel != nullptr ? last->sequel : root();
  }
  // From now on, what follows such a trace is told from all else.
  void GiveSequel(TrieNode* last) {
    if (last->sequel == nullptr) last->sequel = NewSequel(*last);
  }
  size_t num_calls() const { return nodes_.size() - 2; }

  // A trace is to be cut after this call: a step ends here, or two of so many calls.
  void MarkStep(Expected* call, uint32_t period = 0) {
    if (period == 0) {
      call->closes_step = true;
    } else {
      call->period = period;
    }
    ++num_marks_;
  }
  uint64_t num_marks() const { return num_marks_; }  // that were made so far
  // A step ends at this node, and at each that is new from now on and is reached by calls like these.
  void RememberStep(const TrieNode& end) { ends_.try_emplace(end.path_alike); }
  // Note [Unlike steps]: amid a trace, a step has ended at this call, with such a tail. Once a tail has ended some, it
  // ends them all, those that are known too.
  void NoteTail(uint64_t tail, Expected* end);
  bool HasTails() const { return !tails_.empty(); }
  bool IsTail(uint64_t tail) const;
  // A part of a step ends at this node, and at such new ones, too; what follows begins at one root, whatever the sizes
  // of the part: Note [Growing sizes]. `is_last`: the program waits there.
  void RememberPart(TrieNode* end, bool is_last);

  bool IsPartOfAnySize(const TrieNode& end) const {
    const auto found = ends_.find(end.path_alike);
    return found != ends_.end() && found->second.is_part;
  }

  // For growing_sizes.h: by their path_alike, traces that the host has waited for.
  struct Waited {
    const TrieNode* end = nullptr;  // the last one
    size_t begin = 0, same = 0;     // the calls that have the same sizes in all; same = 0: not known, or too few
    bool mostly_grows = false;      // too few, of calls that are otherwise equal
    int compared = 0;               // times
  };
  absl::flat_hash_map<uint64_t, Waited>& waited() { return waited_; }

 private:
  friend struct TrieNode;
  // What is done with the end of a path where a new node is like it.
  struct End {
    bool is_part = false;        // of a step
    TrieNode* sequel = nullptr;  // of a part
    bool ends_trace = true;
  };
  TrieNode* NewNode(c10::ArrayRef<int64_t> words, c10::ArrayRef<int32_t> slots);
  TrieNode* NewSequel(const TrieNode& last);
  void MarkLike(const End& end, TrieNode* node);
  void* FromStream(size_t size_bytes);

  std::vector<std::unique_ptr<char[]>> chunks_;  // of the stream that predictions read
  char* next_ = nullptr;                         // in the newest
  char* end_ = nullptr;
  std::deque<TrieNode> nodes_;
  uint64_t num_marks_ = 0;
  absl::flat_hash_map<uint64_t, End> ends_;  // by their path_alike
  absl::flat_hash_map<uint64_t, Waited> waited_;
  absl::flat_hash_map<uint64_t, std::vector<Expected*>> tails_;  // the ends of steps that had each
};

// The one that traces begin in: one for all threads, so that a loop known in one is known in every other. Another takes
// its place, and this is null in between, once it holds too many calls (option max_known_ops); traces and replays keep
// theirs. The device lock is held.
std::shared_ptr<Trie>& CurrentTrie();

}  // namespace torch_lazy::lazy
