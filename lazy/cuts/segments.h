// SPDX-License-Identifier: Apache-2.0
// Running a trace that holds more than one step, or the end of one and the beginning of the next, as so many traces.
#pragma once

#include <vector>

#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {

// How often a trace with a short part is run in two: a program that has not waited between them by then may never do
// so, and if it does, both are known.
inline constexpr int kMostShortParts = 256;

// Where to cut the calls of a trace, from 0 to their number n: at n - 2P and n - P if it ends with two steps of P
// calls; else after its last update, if it ends with the next step's beginning. Counts how often it asks so. The device
// lock is held.
std::vector<size_t> PartsOf(const Trace& trace);

struct Parts {
  std::vector<size_t> cuts = {};
  bool begin_early = false;  // of later traces: Note [Early cuts]
  bool have_sizes = false;   // of their own, that stay or grow: Note [Growing sizes]
};

// Runs each part as a trace of its own, the first one from the root or, if they have sizes of their own, from where the
// trace began; and marks where steps end, or parts that shall begin early or have sizes of their own. Leaves the
// contents in the trace's slots. The device lock is not held.
void RunParts(Trace* trace, const Parts& parts);

}  // namespace torch_lazy::lazy
