// SPDX-License-Identifier: Apache-2.0
// Copies, fills and triangles.
//
// copy_ and the fills are rows of their own: what stood in the written tensor does not matter.
#include "device/rows/formula.h"
#include "device/rows/rows.h"
#include "device/shapes/in_place.h"
#include "device/shapes/indexing.h"

namespace torch_lazy::device {
namespace {

using ir::DType;

bool Copy(lazy::Lowering& call) {
  if (!IsReal(call, 1) || ir::IsComplex(call.Result(0).dtype)) return false;
  call.Return(0, call.Tensor(1));
  return true;
}

bool Clone(lazy::Lowering& call) {
  if (!IsReal(call, 0)) return false;
  call.Return(0, call.Tensor(0));
  return true;
}

bool FillNumber(lazy::Lowering& call) {
  if (ir::IsComplex(call.Result(0).dtype)) return false;
  call.Return(0, call.Number(1, call.Result(0).dtype));
  return true;
}

bool Zero(lazy::Lowering& call) {
  if (ir::IsComplex(call.Result(0).dtype)) return false;
  call.Return(0, call.b().Const(call.Result(0).dtype, 0));
  return true;
}

// Keeps the elements whose column minus row is at most (or at least) `diagonal`.
template <ir::Op kCompare>
bool Triangle(lazy::Lowering& call) {
  if (!IsReal(call, 0)) return false;
  const Tensor x(call.b(), call.Tensor(0));
  const ir::Type index{DType::kI64, {x.dims()[x.rank() - 2], x.dims()[x.rank() - 1]}};
  const Tensor row(call.b(), call.b().Iota(index, 0)), column(call.b(), call.b().Iota(index, 1));
  const Tensor kept = Binary(kCompare, column - row, row.Number(static_cast<double>(call.Int(1))));
  call.Return(0, Where(kept, x, x.Number(0)));
  return true;
}

constexpr lazy::Row kCopyRows[] = {
    {"aten::copy_", Copy, kTakesAllValues | kCopies | kFills | kExact, shapes::Copy},
    {"aten::clone", Clone, kTakesAllValues},
    {"aten::fill_.Scalar", FillNumber, kTakesAllValues | kFills | kExact, shapes::Fill},
    {"aten::fill_.Tensor", Copy, kTakesAllValues | kFills | kTakesNumberOfAnyDevice | kExact, shapes::Fill},
    {"aten::zero_", Zero, kTakesAllValues | kFills | kExact, shapes::Fill},
    {"aten::tril", Triangle<ir::Op::kLe>, kTakesAllValues, shapes::Triangle},
    {"aten::triu", Triangle<ir::Op::kGe>, kTakesAllValues, shapes::Triangle},
    {.name = "aten::_copy_from*", .flags = kTakesAllValues},
    {.name = "aten::_to_copy", .flags = kTakesAllValues},
    {.name = "aten::copy_sparse_to_sparse_", .flags = kTakesAllValues},
};

}  // namespace

Rows CopyRows() { return kCopyRows; }

}  // namespace torch_lazy::device
