// SPDX-License-Identifier: Apache-2.0
// How C++ text says types, numbers and elementwise ops.
#pragma once

#include <string>
#include <vector>

#include "codegen/kernels/precision.h"
#include "codegen/plan/target.h"
#include "ir/graph.h"

namespace torch_lazy::codegen {

std::string MemoryType(ir::DType dtype);   // in a buffer: "float", "unsigned short" for 16-bit floats
std::string ComputeType(ir::DType dtype);  // in a register: "float" for 16-bit floats, which are exact there

// What a register needs to become memory, and back.
std::string LoadText(ir::DType dtype, const std::string& memory);
std::string StoreText(ir::DType dtype, const std::string& value);

std::string FloatLiteral(Target target, ir::DType dtype, double value);
std::string IntegerLiteral(ir::DType dtype, int64_t value);

// An elementwise node applied to registers.
std::string OpText(Target target, const ir::Graph& graph, const ir::Node& node,
                   const std::vector<std::string>& arguments, Precision precision = Precision::kFull);

// A reduction: its accumulator's type, its first value, and the ops that fold a number and another
// accumulator into it.
struct Fold {
  std::string type;
  std::string block_type;  // enough for a few hundred numbers
  std::string identity;
  std::string step;     // of accumulator $0 and number $1
  std::string combine;  // of accumulators $0 and $1
};
Fold FoldOf(Target target, ir::Op op, ir::DType dtype);

// $0, $1, ... replaced.
std::string Substitute(const std::string& pattern, const std::vector<std::string>& arguments);

}  // namespace torch_lazy::codegen
