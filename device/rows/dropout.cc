// SPDX-License-Identifier: Apache-2.0
// Dropout on a GPU, whose random numbers are drawn in the kernels that use them.
#include "ir/decompose/dropout.h"

#include "device/eager_overrides/our_arguments.h"
#include "device/eager_overrides/runners.h"
#include "device/rows/formula.h"
#include "device/rows/rows.h"
#include "device/shapes/layers.h"

namespace torch_lazy::device {
namespace {

using ir::DType;
using ir::Value;

// (input, p, scale, threshold, seed, offset, threads, width, order) -> (output, which elements are kept)
bool Dropout(lazy::Lowering& call) {
  const DType type = call.ComputeType();
  if (!call.IsForCuda() || !ir::IsFloat(type)) return false;
  ir::Builder& b = call.b();
  const ir::Dims dims = call.Result(0).dims;
  int64_t count = 1;
  for (const int64_t size : call.Sizes(0)) count *= size;
  const Tensor x{b, call.Operand(0, type)}, scale{b, call.Number(2, type)};
  const Value threshold = call.Number(3, DType::kI64), seed = call.Number(4, DType::kI64),
              offset = call.Number(5, DType::kI64), threads = call.Number(6, DType::kI64),
              width = b.Const(DType::kI64, call.Int(7));
  const Tensor kept{b, ir::decompose::KeptElements(b, {seed, offset, threads, width, threshold}, dims, call.IntList(8),
                                                   call.ExtentOf(count))};
  call.Return(0, x * Cast(kept, type) * scale);
  call.Return(1, kept);
  return true;
}

constexpr lazy::Row kDropoutRows[] = {{.name = "torch_lazy::dropout",
                                       .lower = Dropout,
                                       .flags = kTakesSeed,
                                       .shape = shapes::Dropout,
                                       .runner = RunDropout,
                                       .check = CheckDropout}};

}  // namespace

Rows DropoutRows() { return kDropoutRows; }

}  // namespace torch_lazy::device
