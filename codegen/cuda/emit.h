// SPDX-License-Identifier: Apache-2.0
// CUDA text of a group's kernel, by its shape.
//
// As for the CPU, nothing in the text depends on sizes or numbers; how many threads share a row or
// a column follows from the sizes seen first, and is right for any.
#pragma once

#include <optional>

#include "codegen/kernels/kernel_text.h"
#include "codegen/layout/attention.h"
#include "codegen/plan/compile_options.h"

namespace torch_lazy::codegen::cuda {

// Shared memory that a kernel may declare: the compiler refuses more.
inline constexpr int64_t kSharedBytes = 48 << 10;

// A thread does some neighbouring elements.
WrittenKernel EmitMap(const ir::Graph& graph, const Body& body, const CompileOptions& options);

// The same for a map that reads or writes across memory, in tiles; nothing if it does neither.
std::optional<WrittenKernel> EmitTiles(const ir::Graph& graph, const Body& body, const CompileOptions& options);

// A warp or a block does a row, or a block a share of the rows.
WrittenKernel EmitRows(const ir::Graph& graph, const Body& body, const CompileOptions& options);

// A block does neighbouring columns.
WrittenKernel EmitColumns(const ir::Graph& graph, const Body& body, const CompileOptions& options);

// A block does a share of a row, or of the rows of a few columns.
WrittenKernel EmitShares(const ir::Graph& graph, Group::Shape shape, const Body& body);

// A block does a query. `body`: as BodyOf makes it of an attend node, whose operands' slots are the values that are
// stored.
Body BodyOf(const Attention& attention, ir::Value attend);
WrittenKernel EmitAttention(const ir::Graph& graph, const Body& body, const CompileOptions& options);

WrittenKernel EmitKernel(const ir::Graph& graph, Group::Shape shape, const Body& body, const CompileOptions& options);

// Gives the kernel those of the entries that are wanted, and another name. For many if it cannot have one for a few.
void AddEntries(const WrittenKernel::Entries& entries, Kernel::Entries wanted, Kernel* kernel);

}  // namespace torch_lazy::codegen::cuda
