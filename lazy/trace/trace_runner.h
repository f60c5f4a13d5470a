// SPDX-License-Identifier: Apache-2.0
// How a trace that ends at a node of the trie is run. The node owns its runners; entries (variants/entry.h) are those.
#pragma once

#include <vector>

namespace torch_lazy::lazy {

class Trace;

class TraceRunner {
 public:
  virtual ~TraceRunner() = default;

  // True if it can run a cut whose live written slots are `live`.
  virtual bool Serves(const std::vector<bool>& live) const = 0;

  // Runs the trace, which was cut at the node. `once`: no such cut is expected again, so nothing is asked of the
  // compiler.
  virtual void Run(Trace* trace, bool once) = 0;
};

}  // namespace torch_lazy::lazy
