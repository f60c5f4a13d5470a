// SPDX-License-Identifier: Apache-2.0
// C++ text of a group's kernel, by its shape.
//
// A kernel is a serial function over a range [begin, end) of its outer iteration space. Nothing in
// its text depends on sizes, numbers or threads, only on structure: which loops there are and which
// addresses step by 0, by 1 or further.
#pragma once

#include "codegen/kernels/body.h"
#include "codegen/kernels/kernel_text.h"

namespace torch_lazy::codegen {

// One element per iteration.
WrittenKernel EmitMap(const ir::Graph& graph, const Body& body);

// One row per iteration: stages of loops through the row, each folding it or writing to it.
WrittenKernel EmitRows(const ir::Graph& graph, const Body& body);

// One column per iteration, many side by side: neighbouring columns are neighbours in memory.
WrittenKernel EmitColumns(const ir::Graph& graph, const Body& body);

// By the group's shape, with the smallest piece worth a thread.
WrittenKernel EmitKernel(const ir::Graph& graph, Group::Shape shape, const Body& body);

}  // namespace torch_lazy::codegen
