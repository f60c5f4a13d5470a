// SPDX-License-Identifier: Apache-2.0
// Where a step that is waited for is cut, since most of its sizes stay and some grow.
//
// Note [Growing sizes]
// `generate` with a static cache hands the network one token at a time and a cache of one size. But the ids that it has
// written grow by one with each token, and so each token is a trace of its own: it is lowered and bound anew, and no
// CUDA graph of it is ever replayed. So where the host has waited for two traces that are alike but for sizes, and half
// of their calls or more, in a row, have equal sizes, that row is run as a trace of its own, and so is what comes
// before and behind it. Their ends are marked (Trie::RememberPart), so that traces of sizes that were never seen are
// cut there, too. The row then is one trace, whatever has grown around it. Another network's tokens may begin like
// these, and so their traces begin at a part's end. All of it follows from calls and sizes, so runs repeat.
//
// A row of many calls is cut early besides (early_cuts.h). So are traces of many calls that are alike but for sizes and
// have no such row, as with a cache that grows: they will have no CUDA graph, and take the host long to launch. Their
// parts run ahead (run_ahead.h).
#pragma once

#include <cstddef>
#include <vector>

#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {

// The host waits for the trace, which has calls and no period. Where to cut them, from 0 to their number; empty:
// nowhere but at their end. The device lock is held.
std::vector<size_t> CutsAroundSizes(const Trace& trace);

}  // namespace torch_lazy::lazy
