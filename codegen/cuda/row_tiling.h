// SPDX-License-Identifier: Apache-2.0
// How many threads walk along a row, and how much of it they keep in registers.
#pragma once

#include "codegen/cuda/vector_access.h"
#include "codegen/kernels/loops.h"
#include "codegen/kernels/row_stages.h"
#include "codegen/plan/compile_options.h"

namespace torch_lazy::codegen::cuda {

struct RowTiling {
  int threads = 32;            // of a row: lanes of a warp side by side, or all of a block
  int rows_per_block = 1;      // at once
  int turns = 1;               // of these, one after the other, without shares
  bool keeps_columns = false;  // what all rows share is read first, and stays in registers
  int rows_at_once = 1;        // that a group keeps, of a share
  bool fetches = false;        // the next of these into shared memory, while it does some
  int blocks_at_once = 0;      // of a multiprocessor, so that registers suffice; 0: as they come
  int items = 0;               // vectors of a thread that are kept; 0: rows are too long for that, or read once
  int unroll = 1;              // of the walk by vectors, where none are kept

  bool takes_turns() const { return turns > 1; }
};

// `rows` keeps what registers can; `access` says what is read by vectors, and what by all rows. What a block fetches
// ahead and folds fits into its shared memory.
RowTiling RowTilingOf(const ir::Graph& graph, const Body& body, const Loops& loops, const RowStages& rows,
                      const VectorAccess& access, const CompileOptions& options);

}  // namespace torch_lazy::codegen::cuda
