// SPDX-License-Identifier: Apache-2.0
// A kernel's loops, as few as its addresses allow.
#pragma once

#include <vector>

#include "codegen/kernels/body.h"

namespace torch_lazy::codegen {

struct Loop {
  Monomial extent;
  int variable;   // the innermost of the variables it stands for: its coefficient is the loop's
                  // stride
  uint64_t bits;  // all of them
};

struct Loops {
  std::vector<Loop> outer;  // outermost first; their product is the kernel's range
  std::vector<Loop> inner;
};

// Two neighbours are one loop if every address steps through them evenly.
Loops MakeLoops(const Body& body);

}  // namespace torch_lazy::codegen
