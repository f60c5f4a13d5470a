// SPDX-License-Identifier: Apache-2.0
// From the calls of an entry to a graph.
#pragma once

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "ir/graph.h"
#include "lazy/lower/packed_convolution.h"
#include "lazy/trace/trace.h"
#include "lazy/variants/entry.h"

namespace torch_lazy::lazy {

class GraphWriter;

// Where a run finds the graph's scalar k.
struct NumberSource {
  int32_t place;  // in the trace's numbers
  int32_t item;   // position in a list of numbers, or -1
  bool integer;   // an i64, else an f64
};

struct LoweredTrace {
  ir::Graph graph;                                     // until it has a plan
  std::vector<int64_t> symbols;                        // the number of each symbol
  std::vector<int32_t> param_slots;                    // graph parameter -> slot, or ~k: what is carried, number k
  std::vector<NumberSource> numbers;                   // graph scalar -> number of the trace
  std::vector<int32_t> output_slots;                   // graph output -> slot, likewise
  std::shared_ptr<std::vector<c10::Storage>> carried;  // contents that stay from run to run; null: none
  std::vector<int32_t> by_aten;                        // the calls that did not become primitives
  std::vector<PackedConvolution> convolutions;         // that it calls by this name
  std::vector<int32_t> calls;  // once there is a plan, per node of the graph: the call it was made for, or -1
};

// What lies there, for a run on the trace.
inline c10::Storage& ContentAt(const LoweredTrace& lowered, int32_t slot, Trace* trace) {
  return slot >= 0 ? trace->slots[static_cast<size_t>(slot)].content : (*lowered.carried)[static_cast<size_t>(~slot)];
}

// Lowers call k in a way of its caller's. False: as always.
using LowerOtherwise = absl::FunctionRef<bool(GraphWriter*, const TrieNode& call, size_t k)>;

// Calls that the entry leaves to ATen do not become primitives.
// Null if some value has a dtype that graphs do not know: then the entry is always interpreted.
// `trace` gives the structural arguments, which are the same on every run of the entry.
std::unique_ptr<LoweredTrace> Lower(
    const Entry& entry, const Trace& trace,
    LowerOtherwise otherwise = [](GraphWriter*, const TrieNode&, size_t) { return false; });

}  // namespace torch_lazy::lazy
