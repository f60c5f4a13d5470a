// SPDX-License-Identifier: Apache-2.0
#include "codegen/partition/op_cost.h"

namespace torch_lazy::codegen {
namespace {

constexpr double kSimple = 0.02;  // 16 floats in a cycle
constexpr double kTranscendental = 0.35;

// Those that are neither simple nor transcendental.
struct CostRow {
  ir::Op op;
  double nanoseconds;
};
constexpr CostRow kCostRows[] = {
    {ir::Op::kDiv, 0.15},     {ir::Op::kRecip, 0.15},  {ir::Op::kSqrt, 0.2}, {ir::Op::kRsqrt, 0.35},
    {ir::Op::kFmod, 5},       {ir::Op::kRemainder, 5}, {ir::Op::kTake, 1},   {ir::Op::kFloorDiv, 5},
    {ir::Op::kTruncDiv, 0.2}, {ir::Op::kBernoulli, 5},
};

}  // namespace

double NanosecondsOf(const ir::Node& node) {
  for (const CostRow& row : kCostRows) {
    if (row.op == node.op) return row.nanoseconds;
  }
  return (ir::Info(node.op).traits & ir::kTranscendental) != 0 ? kTranscendental : kSimple;
}

bool IsCostly(const ir::Node& node) { return NanosecondsOf(node) > 0.1; }

bool IsDear(const ir::Node& node) { return NanosecondsOf(node) > 1; }

}  // namespace torch_lazy::codegen
