// SPDX-License-Identifier: Apache-2.0
// Functions of two tensors, and of a tensor and a number.
#include <cmath>

#include "device/rows/formula.h"
#include "device/rows/rows.h"

namespace torch_lazy::device {
namespace {

using ir::DType;
using ir::Op;

// ATen's vectorised add is one fused multiply-add, alpha in the type of the result; sub is add of -alpha.
bool AddScaled(lazy::Lowering& call, Tensor x, Tensor y, double sign) {
  if (call.ComputeType() == DType::kBool && sign < 0) return false;
  Tensor alpha = Rounded(Argument<Number>::Read(call, 2), call.Result(0).dtype);
  if (sign < 0) alpha = -alpha;
  call.Return(0, IsFloat(x) ? Fma(alpha, y, x) : x + alpha * y);
  return true;
}

// Arguments x and y are tensors, and the sum is x + sign * alpha * y.
template <int kX, int kY, int kSign>
bool AddTensors(lazy::Lowering& call) {
  if (ir::IsComplex(call.ComputeType()) || !IsReal(call, kX) || !IsReal(call, kY)) return false;
  return AddScaled(call, ReadAsResult(call, kX), ReadAsResult(call, kY), kSign);
}

template <int kSign>
bool AddNumber(lazy::Lowering& call) {
  if (ir::IsComplex(call.ComputeType()) || !IsReal(call, 0)) return false;
  return AddScaled(call, ReadAsResult(call, 0), Rounded(Argument<Number>::Read(call, 1), call.Result(0).dtype), kSign);
}

// ATen's in-place form multiplies the number by the tensor, not the tensor by the number, and then rounds the number
// first.
bool MulNumberInPlace(lazy::Lowering& call) {
  if (ir::IsComplex(call.ComputeType())) return false;
  call.Return(0, ReadAsResult(call, 0) * Rounded(Argument<Number>::Read(call, 1), call.Result(0).dtype));
  return true;
}

// An integer divided by zero is the user's error, which ATen raises.
template <Op kOp>
constexpr auto* FloatBinary = Primitive2<kFloats, kOp>;

// Of 16 bits ATen rounds each step of it, and an integer may lie between.
bool FloorDivide(lazy::Lowering& call) {
  if (!InClass(kFloats, call.ComputeType()) || ir::IsHalf(call.Result(0).dtype)) return false;
  if (!IsReal(call, 0) || !IsReal(call, 1)) return false;
  call.Return(0, Binary(Op::kFloorDiv, ReadAsResult(call, 0), Argument<Exact>::Read(call, 1)));
  return true;
}

// (x, y, rounding_mode?)
bool DivideByMode(lazy::Lowering& call) {
  if (!InClass(kFloats, call.ComputeType()) || !IsReal(call, 0) || !IsReal(call, 1)) return false;
  const Tensor x = ReadAsResult(call, 0), y = Argument<Exact>::Read(call, 1);
  const absl::string_view mode = call.String(2);
  if (mode == "floor") return FloorDivide(call);
  Tensor quotient = x / y;
  // Of two 16-bit tensors ATen truncates the rounded quotient, of a tensor and a number the quotient.
  if (mode == "trunc" && y.rank() > 0) quotient = Rounded(quotient, call.Result(0).dtype);
  call.Return(0, mode == "trunc" ? Unary(Op::kTrunc, quotient) : quotient);
  return true;
}

// The number, unless it is NaN; then the other.
Tensor SkipNan(Op op, Tensor x, Tensor y) {
  if (!IsFloat(x)) return Binary(op, x, y);
  return Where(NotEqual(x, x), y, Where(NotEqual(y, y), x, Binary(op, x, y)));
}

// The exponents that ATen's kernels know, by the same products; 16-bit floats round after each.
bool PowNumber(lazy::Lowering& call) {
  const double exponent = call.StructuralNumber(1);
  if (!IsReal(call, 0) || !InClass(kNumbers, call.ComputeType())) return false;
  const Tensor x = ReadAsResult(call, 0);
  const DType stored = call.Result(0).dtype;
  const auto product = [&](Tensor a, Tensor c) { return Rounded(a * c, stored); };
  const auto result = [&]() -> std::optional<Tensor> {
    if (exponent == 0) return x.Number(1);
    if (exponent == 1) return x;
    if (exponent == 2) return x * x;
    if (exponent == 3) return product(x, x) * x;
    if (!IsFloat(x)) return std::nullopt;
    if (exponent == 0.5) return Unary(Op::kSqrt, x);
    if (exponent == -0.5) return Unary(Op::kRsqrt, x);
    if (exponent == -1) return Unary(Op::kRecip, x);
    if (exponent == -2) return Unary(Op::kRecip, product(x, x));
    return Binary(Op::kPow, x, Rounded(x.Number(exponent), stored));
  }();
  if (result) call.Return(0, *result);
  return result.has_value();
}

// 0 wins over the logarithm of 0.
Tensor XLogY(Tensor x, Tensor y) { return Where(NotEqual(y, y), y, Where(Equal(x, 0.0), x.Number(0), x * Log(y))); }

Tensor LogAddExp(Tensor x, Tensor y) {
  const Tensor sum = Max(x, y) + Log1p(Exp(-Abs(x - y)));
  return Where(Binary(Op::kAnd, Equal(x, y), Equal(Abs(x), HUGE_VAL)), x, sum);  // inf - inf would be NaN
}

constexpr lazy::Row kArithmeticRows[] = {
    {"aten::add.Tensor", AddTensors<0, 1, 1>, kRefusesTruth | kTakesAllNumbers},
    {"aten::sub.Tensor", AddTensors<0, 1, -1>, kRefusesTruth | kTakesAllNumbers},
    {"aten::rsub.Tensor", AddTensors<1, 0, -1>},
    // Whole, since PyTorch would wrap the number in a tensor: two calls for one, and what C++ optimizers call most.
    {"aten::add.Scalar", AddNumber<1>, kWhole | kWholeInPlace | kRefusesTruth | kTakesAllNumbers},
    {"aten::sub.Scalar", AddNumber<-1>, kWhole | kWholeInPlace | kRefusesTruth | kTakesAllNumbers},
    // A 16-bit float times or by a number: the number is not rounded first.
    {"aten::mul.Tensor", Formula<kReals, [](Tensor x, Exact y) { return x * y; }>, kTakesAllNumbers},
    {"aten::div.Tensor", Formula<kFloats, [](Tensor x, Exact y) { return x / y; }>, kRefusesZero | kTakesAllNumbers},
    {"aten::mul.Scalar", Formula<kReals, [](Tensor x, Number y) { return x * y; }>, kWhole | kTakesAllNumbers},
    {"aten::mul_.Scalar", MulNumberInPlace, kWhole | kTakesAllNumbers},
    {"aten::div.Scalar", Formula<kFloats, [](Tensor x, Number y) { return x / y; }>,
     kWhole | kWholeInPlace | kRefusesZero | kTakesAllNumbers},
    {"aten::div.Tensor_mode", DivideByMode, kRefusesZero | kTakesAllNumbers},
    {"aten::floor_divide", FloorDivide, kRefusesZero},
    {"aten::remainder.Tensor", FloatBinary<Op::kRemainder>, kRefusesZero},
    {"aten::fmod.Tensor", FloatBinary<Op::kFmod>, kRefusesZero},
    {"aten::pow.Tensor_Scalar", PowNumber, kStructuralScalars | kRefusesNegative},
    {"aten::pow.Tensor_Tensor", FloatBinary<Op::kPow>, kRefusesNegative},
    {"aten::pow.Scalar", Formula<kFloats, [](Number x, Tensor y) { return Binary(Op::kPow, x, y); }>,
     kDenseResult | kRefusesNegative},
    {"aten::atan2", FloatBinary<Op::kAtan2>},
    {"aten::maximum", Primitive2<kReals, Op::kMax>},
    {"aten::minimum", Primitive2<kReals, Op::kMin>},
    {"aten::fmax", Formula<kReals, [](Tensor x, Tensor y) { return SkipNan(Op::kMax, x, y); }>},
    {"aten::fmin", Formula<kReals, [](Tensor x, Tensor y) { return SkipNan(Op::kMin, x, y); }>},
    {"aten::bitwise_and.Tensor", Primitive2<kIntegers, Op::kAnd>, kIntegersAlone},
    {"aten::bitwise_or.Tensor", Primitive2<kIntegers, Op::kOr>, kIntegersAlone},
    {"aten::bitwise_xor.Tensor", Primitive2<kIntegers, Op::kXor>, kIntegersAlone},
    {"aten::xlogy.Tensor", Formula<kFloats, [](Tensor x, Tensor y) { return XLogY(x, y); }>},
    {"aten::logaddexp", Formula<kFloats, [](Tensor x, Tensor y) { return LogAddExp(x, y); }>},
    {.name = "aten::copysign.Tensor", .flags = kTakesAllValues},  // its in-place form is not tagged pointwise
    {.name = "aten::complex", .flags = kWhole},
    {.name = "aten::polar", .flags = kWhole},
    // Asks for the device's own loop.
    {.name = "aten::ldexp.Tensor", .flags = kWhole | kWholeInPlace},
    {.name = "aten::ldexp.out", .flags = kWhole},
};

}  // namespace

Rows ArithmeticRows() { return kArithmeticRows; }

}  // namespace torch_lazy::device
