// SPDX-License-Identifier: Apache-2.0
// When a bound plan reads, overwrites and lets go of its parameters.
//
// A plan runs calls in another order than the program. Where one may fail, what was overwritten before it is copied
// first and put back: Note [Failing calls] in ops/op.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "codegen/plan/plan.h"
#include "ir/graph.h"
#include "lazy/trace/call_sequence.h"

namespace torch_lazy::lazy {

struct ParamUses {
  std::vector<int32_t> read;                // buffers, in order, of parameters that are not overwritten unread
  std::vector<std::vector<int32_t>> saves;  // per step: parameters to copy before it, which overwrites them
  size_t failing_end = 0;                   // no step from here on may fail ...
  size_t undoable_end = 0;                  // ... and from here on, what has been written, or let go, cannot be undone
  std::vector<std::vector<int32_t>> last_reads;  // per step: parameters that nothing writes and nothing later reads
};

ParamUses FindParamUses(const CallSequence& calls, const codegen::Plan& plan, const ir::Graph& graph, size_t num_params,
                        absl::Span<const int64_t> symbols);

}  // namespace torch_lazy::lazy
