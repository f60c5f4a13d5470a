// SPDX-License-Identifier: Apache-2.0
// Comparisons and logic: operands meet in their common type, the result is bool.
#include <algorithm>
#include <optional>

#include "device/rows/formula.h"
#include "device/rows/rows.h"

namespace torch_lazy::device {
namespace {

using ir::DType;
using ir::Op;

int Category(DType dtype) { return ir::IsFloat(dtype) ? 2 : ir::IsInteger(dtype) ? 1 : 0; }

// c10::promoteTypes for the real types.
DType Promote(DType x, DType y) {
  if (x == y) return x;
  if (Category(x) != Category(y)) return Category(x) > Category(y) ? x : y;
  if (ir::IsHalf(x) && ir::IsHalf(y)) return DType::kF32;
  const DType low = std::min(x, y), high = std::max(x, y);
  return low == DType::kU8 && high == DType::kI8 ? DType::kI16 : high;
}

// The type in which two tensors meet: one without dims only counts if its category is higher. Nothing if that depends
// on whether the f64 was a number of the program's, which counts as f32.
std::optional<DType> CommonType(const Tensor& x, const Tensor& y) {
  if (x.dtype() == y.dtype()) return x.dtype();
  if (x.rank() > 0 && y.rank() > 0) return Promote(x.dtype(), y.dtype());
  if ((x.rank() == 0 && x.dtype() == DType::kF64) || (y.rank() == 0 && y.dtype() == DType::kF64)) {
    const Tensor& other = x.dtype() == DType::kF64 ? y : x;
    return other.rank() > 0 && IsFloat(other) ? std::make_optional(other.dtype()) : std::nullopt;
  }
  if ((x.rank() == 0) == (y.rank() == 0)) return Promote(x.dtype(), y.dtype());
  const Tensor& with_dims = x.rank() > 0 ? x : y;
  const Tensor& without = x.rank() > 0 ? y : x;
  return Category(without.dtype()) > Category(with_dims.dtype()) ? without.dtype() : with_dims.dtype();
}

Tensor Meet(const Tensor& x, DType type) { return Cast(Cast(x, type), Wide(type)); }

template <Op kOp>
bool CompareTensors(lazy::Lowering& call) {
  if (!IsReal(call, 0) || !IsReal(call, 1)) return false;
  const Tensor x(call.b(), call.Tensor(0)), y(call.b(), call.Tensor(1));
  const std::optional<DType> type = CommonType(x, y);
  if (!type) return false;
  call.Return(0, Binary(kOp, Meet(x, *type), Meet(y, *type)));
  return true;
}

// A number joins in the tensor's type, except that a float turns integers, and any number a bool, into its own.
template <Op kOp>
bool CompareNumber(lazy::Lowering& call) {
  if (!IsReal(call, 0)) return false;
  const Tensor x(call.b(), call.Tensor(0));
  DType type = x.dtype();
  if (call.NumberIsFloat(1) && !IsFloat(x)) type = DType::kF32;
  if (!call.NumberIsFloat(1) && type == DType::kBool) type = DType::kI64;
  call.Return(0, Binary(kOp, Meet(x, type), Meet({call.b(), call.Number(1, type)}, type)));
  return true;
}

template <Op kOp>
bool Logical(lazy::Lowering& call) {
  if (!IsReal(call, 0) || !IsReal(call, 1)) return false;
  const Tensor x(call.b(), call.Tensor(0)), y(call.b(), call.Tensor(1));
  call.Return(0, Binary(kOp, Cast(x, DType::kBool), Cast(y, DType::kBool)));
  return true;
}

constexpr lazy::Row kComparisonRows[] = {
    {"aten::eq.Tensor", CompareTensors<Op::kEq>, kBoolean},
    {"aten::ne.Tensor", CompareTensors<Op::kNe>, kBoolean},
    {"aten::lt.Tensor", CompareTensors<Op::kLt>, kBoolean},
    {"aten::le.Tensor", CompareTensors<Op::kLe>, kBoolean},
    {"aten::gt.Tensor", CompareTensors<Op::kGt>, kBoolean},
    {"aten::ge.Tensor", CompareTensors<Op::kGe>, kBoolean},
    {"aten::eq.Scalar", CompareNumber<Op::kEq>, kBoolean | kTakesAllNumbers},
    {"aten::ne.Scalar", CompareNumber<Op::kNe>, kBoolean | kTakesAllNumbers},
    {"aten::lt.Scalar", CompareNumber<Op::kLt>, kBoolean | kTakesAllNumbers},
    {"aten::le.Scalar", CompareNumber<Op::kLe>, kBoolean | kTakesAllNumbers},
    {"aten::gt.Scalar", CompareNumber<Op::kGt>, kBoolean | kTakesAllNumbers},
    {"aten::ge.Scalar", CompareNumber<Op::kGe>, kBoolean | kTakesAllNumbers},
    {"aten::logical_and", Logical<Op::kAnd>, kBoolean | kWhole},
    {"aten::logical_or", Logical<Op::kOr>, kBoolean | kWhole},
    {"aten::logical_xor", Logical<Op::kXor>, kBoolean | kWhole},
};

}  // namespace

Rows ComparisonRows() { return kComparisonRows; }

}  // namespace torch_lazy::device
