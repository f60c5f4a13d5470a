// SPDX-License-Identifier: Apache-2.0
// Kernels that could not be compiled, as the user is told of them.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "lazy/lower/lowered_trace.h"
#include "lazy/run/plans.h"
#include "lazy/trace/trie.h"

namespace torch_lazy::lazy {

// Each kernel once. `calls`: those of the entry that was lowered, of which the first that the kernel computes is asked
// for its line; `trace`: one that ends there. True if there are any.
bool NoteFailures(absl::Span<const FailedKernel> kernels, const LoweredTrace& lowered,
                  absl::Span<const TrieNode* const> calls, const Trace& trace);

// At each cut: warns of the first kernel that has failed, once, when its line is known, or is not to be had.
void WarnOfFailures();

// A line for each, since the program began: which, of what operators, where, and the first error.
std::string TextOfFailedKernels();

}  // namespace torch_lazy::lazy
