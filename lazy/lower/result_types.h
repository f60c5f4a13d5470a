// SPDX-License-Identifier: Apache-2.0
// The dtypes in which an in-place or `out=` call computes its results.
#pragma once

#include <optional>
#include <vector>

#include "lazy/trace/trace.h"
#include "lazy/trace/trie.h"

namespace torch_lazy::lazy {

// What the functional form (the row's) would return for a call of the trace: `bf16.add_(f32)` adds in f32 and rounds
// once when it writes. Empty where the written tensor's own dtype is the answer, or nothing is known.
std::vector<std::optional<at::ScalarType>> FunctionalDTypes(const TrieNode& call, const Trace& trace);

}  // namespace torch_lazy::lazy
