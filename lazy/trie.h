// SPDX-License-Identifier: Apache-2.0
// The trie of known traces: each node is a call seen at this place before.
//
// Walking it is the full comparison of two traces, and predicts the geometry of the next call's results. Nodes hold
// numbers, not symbols: graphs, which are free of sizes, are shared between paths by the plan cache (plans.h).
#pragma once

#include <memory>
#include <vector>

#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include "absl/container/flat_hash_map.h"
#include "lazy/geometry.h"
#include "lazy/op.h"

namespace torch_lazy::lazy {

class Entry;

// One returned tensor of a call.
struct ResultShape {
  int16_t ret = 0;         // which return
  int16_t item = -1;       // position in a returned list
  int16_t arg = -1;        // >= 0: it is this written argument itself
  bool defined = true;
  Geometry geometry;       // of a new tensor
  size_t size_bytes = 0;   // of its new storage
};

// What a call returns, as far as geometry goes. Shared between nodes; never changes.
struct CallShape {
  std::vector<ResultShape> results;
  std::vector<int> list_sizes;  // per return: -1 for a tensor
};

struct NodeOperand {
  int32_t slot;
  int16_t arg;
  int16_t item;
  bool written;
  Geometry geometry;
};

struct alignas(64) TrieNode {
  // --- what a prediction reads comes first ---
  const Op* op = nullptr;                      // null at the root
  TrieNode* likely = nullptr;                  // the child taken last
  const TrieNode* ahead = nullptr;             // what came some calls later the last time: to be fetched early
  std::vector<int64_t> words;
  std::vector<int32_t> operand_slots;
  std::shared_ptr<const CallShape> shape;
  uint32_t first_number = 0;                   // run-time numbers take consecutive places of the trace's from here
  int32_t first_result_slot = 0;               // new results take consecutive slots from here
  size_t period = 0;                           // > 0: a trace up to here ends with two steps of so many calls
  bool closes_step = false;                    // a repeated step was seen to end here

  int32_t update_end = -1;                     // where a trace cut here is run in two parts (segments.h); -1: not asked yet
  int32_t depth = 0;                           // calls from the root
  TrieNode* parent = nullptr;
  uint64_t words_hash = 0;
  std::vector<NodeOperand> operands;
  std::vector<c10::IValue> args;               // structure; tensors and run-time numbers are None, lists of tensors undefined
  std::vector<int16_t> number_args;            // the arguments that are run-time numbers, in order

  absl::flat_hash_map<uint64_t, c10::SmallVector<TrieNode*, 1>> children;  // by hash of words and slots
  std::vector<std::unique_ptr<Entry>> entries;

  TrieNode();
  ~TrieNode();
  // Where the trace's numbers hold argument `arg`; -1 if it is no run-time number.
  int32_t PlaceOfNumber(size_t arg) const;
  TrieNode* Find(c10::ArrayRef<int64_t> words, c10::ArrayRef<int32_t> slots);
  TrieNode* Grow(const Op& op, c10::ArrayRef<int64_t> words, c10::ArrayRef<int32_t> slots);
};

}  // namespace torch_lazy::lazy
