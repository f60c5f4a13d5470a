// SPDX-License-Identifier: Apache-2.0
// Whether cuts need much less than an entry that serves them returns.
//
// The first steps of a program may hold what later ones do not: a function that is recorded for replay (replay.h), say,
// keeps what its backward pass reads for longer than a replay does. A plan that returns it all stores it all, and
// cannot join kernels over it.
#pragma once

#include <vector>

#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {

class UnusedOutputs {
 public:
  // A cut of the trace that needs `live` slots, of an entry that returns `returned`, more or the same. True if the cuts
  // before it needed much less as well, so that an entry for `needed()` is worth compiling.
  bool AreMany(const Trace& trace, const std::vector<bool>& live, const std::vector<bool>& returned);

  // What the cuts in a row that have needed much less needed.
  const std::vector<bool>& needed() const { return needed_; }

 private:
  int cuts_ = 0;  // looked at
  int in_a_row_ = 0;
  std::vector<bool> needed_;
};

}  // namespace torch_lazy::lazy
