// SPDX-License-Identifier: Apache-2.0
// Finding where a step of a program's loop ends, without being told.
//
// A step has closed when the last P calls repeat the P before, on the same older storages, and one of these is written in
// each period. Layers, time steps and an optimizer's loop over parameters do not qualify: their storages differ, or
// nothing older is written. A trace that turns out to hold several steps runs as so many; the node where a step ends is
// marked, and later traces that reach it are cut there.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace torch_lazy::lazy {

class Trace;

class StepDetector {
 public:
  // Takes note of the trace's calls up to its newest. Returns the period if a step has just closed, else 0.
  size_t Advance(const Trace& trace);

 private:
  // One call's signature: what it does and to which storages; older ones by identity, those made in the trace by distance.
  uint64_t SignatureOf(const Trace& trace, size_t call, uint64_t* written) const;
  uint64_t HashOfRange(size_t begin, size_t end) const { return prefix_[end] - prefix_[begin] * power_[end - begin]; }

  std::vector<uint64_t> prefix_ = {0};   // polynomial hash of the signatures before each call
  std::vector<uint64_t> power_ = {1};
  absl::flat_hash_map<uint64_t, size_t> last_write_;  // signature of a call that writes an older storage -> its place
};

// The reason to cut the trace after its newest call, or null. `grown`: the call was new to the trie.
const char* MustCut(Trace* trace, bool grown);

}  // namespace torch_lazy::lazy
