// SPDX-License-Identifier: Apache-2.0
// The function of a row kernel that is being written, for those who write a part of it.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "codegen/cuda/accumulator.h"
#include "codegen/cuda/column_operands.h"
#include "codegen/cuda/column_sums.h"
#include "codegen/cuda/row_pipeline.h"
#include "codegen/cuda/row_tiling.h"
#include "codegen/cuda/share_row_loads.h"
#include "codegen/cuda/thread_positions.h"
#include "codegen/cuda/vector_access.h"
#include "codegen/kernels/op_text.h"

namespace torch_lazy::codegen::cuda {

struct RowFunctionParts {
  const Body& body;
  const Loops& loops;
  const RowTiling& tiling;
  const RowThreads threads;
  VectorAccess& access;
  ColumnSums& column_sums;
  ColumnOperands& column_operands;
  ShareRowLoads& row_loads;
  RowPipeline& pipeline;
  KernelText& text;

  bool walks_vectors() const {
    return !threads.is_kept && tiling.items == 0 && !body.has_shares() && loops.inner.size() == 1 &&
           access.HasVectorsInRow();
  }

  std::string StoredText(const Store& store) const {
    return StoreText(text.TypeAt(store.address), text.name(store.expression));
  }
  // What lies at a place that is only there if the condition holds.
  static std::string Guarded(const char* condition, const std::string& place, ir::DType dtype) {
    return absl::StrCat("(", condition, " ? ", place, " : (", MemoryType(dtype), ")0)");
  }

  // For each row that is done at once, `row`, with its addresses; for one row, which has been placed, once.
  template <typename Function>
  void ForEachPlacedRow(Function write) const {
    ForEachRow(threads.rows, &text, [&] {
      if (threads.rows > 1) {
        column_sums.PlaceRow();
        PlaceAddresses(PlaceLoops(loops.outer, 'i', "r", &text), "r", &text);
      }
      write();
    });
  }
};

}  // namespace torch_lazy::codegen::cuda
