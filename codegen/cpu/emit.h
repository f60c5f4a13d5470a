// SPDX-License-Identifier: Apache-2.0
// C++ text of a group's kernel, by its shape.
//
// A kernel is a serial function over a range [begin, end) of its outer iteration space. Nothing in
// its text depends on numbers or threads, only on structure: which loops there are and which
// addresses step by 0, by 1 or further. Sizes seen first choose between texts that are right for any.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "codegen/kernels/body.h"
#include "codegen/kernels/kernel_text.h"
#include "codegen/kernels/loops.h"

namespace torch_lazy::codegen {

// One element per iteration.
WrittenKernel EmitMap(const ir::Graph& graph, const Body& body, absl::Span<const int64_t> seen_extents);

// One row per iteration: stages of loops through the row, each folding it or writing to it.
WrittenKernel EmitRows(const ir::Graph& graph, const Body& body, absl::Span<const int64_t> seen_extents);

// One column per iteration, many side by side: neighbouring columns are neighbours in memory.
WrittenKernel EmitColumns(const ir::Graph& graph, const Body& body, absl::Span<const int64_t> seen_extents);

// The lines of a kernel of columns, or of short rows, whose sums need not be double. Columns side by side are those of
// the last outer loop; or of the longest, where the last one is too short for that: `x.sum(1)` of points, [100, 50, 3],
// runs across the hundred.
enum class Length : uint8_t { kAny, kShort };
void WriteColumns(const Loops& loops, Length length, absl::Span<const int64_t> seen_extents, KernelText* text);

// Rows of few columns, several in one vector: `lanes` of them hold `rows` rows, and lane l is column_of[l] of row
// row_of[l].
constexpr int kLanesOfRows = 64, kMostColumnsInLanes = kLanesOfRows / 2;
void DeclareLanes(const std::string& columns, KernelText* text);

// By the group's shape, with the smallest piece worth a thread.
WrittenKernel EmitKernel(const ir::Graph& graph, Group::Shape shape, const Body& body,
                         absl::Span<const int64_t> seen_extents);

}  // namespace torch_lazy::codegen
