// SPDX-License-Identifier: Apache-2.0
// Running a trace that holds several steps as so many traces.
#pragma once

#include <vector>

#include "lazy/trace.h"

namespace torch_lazy::lazy {

// The entry of `end` that serves these live slots, made if there is none. The device lock is held.
Entry* EntryFor(TrieNode* end, std::vector<bool> live);

// Runs the calls of `trace` cut at n - 2P, n - P and n, where P is its period, each part as a trace of its own from the
// root, and marks where the steps end. Leaves the contents in the trace's slots. The device lock is not held.
void RunSteps(Trace* trace, TrieNode* root);

}  // namespace torch_lazy::lazy
