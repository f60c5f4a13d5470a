// SPDX-License-Identifier: Apache-2.0
// A plan bound to the sizes of one entry, ready to run on any trace that ends there.
#pragma once

#include <vector>

#include "lazy/entry.h"
#include "lazy/lower.h"
#include "lazy/plans.h"
#include "lazy/trace.h"

namespace torch_lazy::lazy {

class BoundPlan {
 public:
  BoundPlan(const Entry& entry, const LoweredTrace& lowered, const PlannedGraph& planned);

  // Runs on the trace's slots and leaves the outputs in them.
  void Run(Trace* trace) const;

 private:
  struct Launch {
    int32_t first_buffer, num_buffers;  // into the step's pointers
    int32_t first_scalar, num_scalars;
    backends::BoundInstance instance;   // all but its pointers
    std::vector<int64_t> extents;
  };
  struct Memory;  // what the buffers of one run are
  void RunLaunch(size_t step, Memory* memory) const;
  void RunCall(size_t step, Trace* trace, Memory* memory) const;
  void FillNumbers(const Trace& trace, std::vector<double>* numbers) const;

  const Entry& entry_;
  const LoweredTrace& lowered_;
  const codegen::Plan& plan_;
  std::vector<size_t> size_bytes_;              // per buffer
  std::vector<std::vector<Launch>> launches_;   // per step
};

}  // namespace torch_lazy::lazy
