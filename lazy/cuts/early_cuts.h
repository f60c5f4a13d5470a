// SPDX-License-Identifier: Apache-2.0
// Where a step that is waited for is cut, to begin early.
//
// Note [Early cuts]
// A program that reads a value at each step leaves a GPU idle while a step is recorded, and is idle itself while the
// step runs. So a large trace for which the host has waited twice in a row at the same call is run in parts
// (segments.h), and the ends of all parts but the last are marked like ends of steps: later traces are cut there when
// the next call comes, and run while the rest is recorded. What follows a part need not be known, since a beginning is
// right for every end. All of it follows from counts and sizes, so runs repeat. The places are kept on disk. A process
// that finds them there, and has waited at each step so far, cuts at the first wait for such a trace. It need not run
// one as a whole first.
//
// The layers of a model are alike, and so are parts that hold one or two. Each part's calls therefore begin at a root
// of their own in the trie (TrieNode::sequel): it is cut at its own end, and its CUDA graph is not another part's,
// which lies at other addresses.
//
// The GPU is idle while the first part is recorded, so that part is short. Each later part is recorded while the one
// before runs, and most steps run somewhat longer than they are recorded, so each is somewhat longer. The last ones
// grow shorter again, since the program waits while the last one runs. A part ends near its place where one kernel
// would do the fewest bytes of both parts; what a product or a backward pass reads is stored anyway.
#pragma once

#include <cstddef>
#include <vector>

#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {

inline constexpr size_t kFewestEarlyCalls = 128;  // of a trace; they take longer to record than cuts do

// True if the device does its work while the host goes on, and LAZY_DISABLE does not name "early".
bool HasDeviceQueue();

// True if the trace, which has calls, is a part of a step that is cut early. What it reads of the parts before is older
// than it, so that it may seem to end with the beginning of another step. The device lock is held.
bool IsEarlyPart(const Trace& trace);

// The trace is to be cut at the call that is its last: because the host waits for it, or for another reason. Counts
// the host's waits. True if its like are to be cut early from now on. The device lock is held.
bool BeginsEarly(const Trace& trace, bool host_waits);

// Where to cut such a trace. `cuts`: as PartsOf has them. The device lock is held.
std::vector<size_t> EarlyCuts(const Trace& trace, std::vector<size_t> cuts);

// `cuts`, and early ones. `is_launched`: the parts will have no CUDA graphs, so that the last
// one takes the host long to launch, and is short. The device lock is held.
std::vector<size_t> WithEarlyCuts(const Trace& trace, std::vector<size_t> cuts, bool is_launched = false);

}  // namespace torch_lazy::lazy
