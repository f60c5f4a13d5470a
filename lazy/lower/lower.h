// SPDX-License-Identifier: Apache-2.0
// From the calls of an entry to a graph.
#pragma once

#include <memory>

#include "absl/functional/function_ref.h"
#include "lazy/lower/graph_writer.h"
#include "lazy/lower/lowered_trace.h"
#include "lazy/trace/call_sequence.h"

namespace torch_lazy::lazy {

// Lowers call k in a way of its caller's. False: as always.
using LowerOtherwise = absl::FunctionRef<bool(GraphWriter*, const TrieNode& call, size_t k)>;

// Calls that are left to ATen do not become primitives.
// Null if some value has a dtype that graphs do not know: then the entry is always interpreted.
// `trace` gives the structural arguments, which are the same on every run of the entry.
std::unique_ptr<LoweredTrace> Lower(
    const CallSequence& calls, const Trace& trace,
    LowerOtherwise otherwise = [](GraphWriter*, const TrieNode&, size_t) { return false; });

}  // namespace torch_lazy::lazy
