// SPDX-License-Identifier: Apache-2.0
// Functions of one tensor.
//
// Eager takes the square root of f32 from MKL, which is off by one bit for every sixth value; here it is correctly
// rounded.
#include <limits>

#include "device/rows/formula.h"
#include "device/rows/rows.h"

namespace torch_lazy::device {
namespace {

using ir::DType;
using ir::Op;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Integers are whole already.
template <Op kOp>
constexpr auto* Whole = &Formula<kNumbers, [](Tensor x) { return IsFloat(x) ? Unary(kOp, x) : x; }>;

// NaN has no sign, as in ATen.
Tensor Sign(Tensor x) {
  if (x.dtype() == DType::kBool) return x;
  return Where(x > 0.0, x.Number(1), Where(x < 0.0, x.Number(-1), x.Number(0)));
}

double Largest(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 65504;
    case DType::kBF16:
      return 0x1.fep127;
    case DType::kF32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

bool NanToNum(lazy::Lowering& call) {
  if (!IsReal(call, 0)) return false;
  const Tensor x = ReadWide(call, 0);
  if (!IsFloat(x)) return call.Return(0, x), true;
  const double largest = Largest(call.b().dtype(call.Tensor(0)));
  const auto number = [&](int arg, double otherwise) {
    return call.IsNone(arg) ? x.Number(otherwise) : Tensor(call.b(), call.Number(arg, x.dtype()));
  };
  const Tensor at_least = Where(Equal(x, -kInfinity), number(3, -largest), x);
  const Tensor finite = Where(Equal(x, kInfinity), number(2, largest), at_least);
  call.Return(0, Where(NotEqual(x, x), number(1, 0), finite));
  return true;
}

// A question about each element: computed in the operand's type, the result is bool.
template <auto kQuestion>
bool Test(lazy::Lowering& call) {
  if (!IsReal(call, 0)) return false;
  call.Return(0, kQuestion(ReadWide(call, 0)));
  return true;
}

Tensor IsInfinite(Tensor x, double infinity) { return IsFloat(x) ? Equal(x, infinity) : NotEqual(x, x); }

constexpr lazy::Row kUnaryRows[] = {
    {"aten::neg", Primitive1<kNumbers, Op::kNeg>},
    // `abs` and the logical functions are whole: in parts they write into an empty tensor and resize it, which is never
    // recorded.
    {"aten::abs", Primitive1<kNumbers, Op::kAbs>, kWhole | kExact},
    {"aten::sqrt", Primitive1<kFloats, Op::kSqrt>},
    {"aten::rsqrt", Primitive1<kFloats, Op::kRsqrt>},
    {"aten::reciprocal", Primitive1<kFloats, Op::kRecip>},
    {"aten::exp", Primitive1<kFloats, Op::kExp>},
    {"aten::exp2", Primitive1<kFloats, Op::kExp2>},
    {"aten::expm1", Primitive1<kFloats, Op::kExpm1>},
    {"aten::log", Primitive1<kFloats, Op::kLog>},
    {"aten::log2", Primitive1<kFloats, Op::kLog2>},
    {"aten::log10", Primitive1<kFloats, Op::kLog10>},
    {"aten::log1p", Primitive1<kFloats, Op::kLog1p>},
    {"aten::sin", Primitive1<kFloats, Op::kSin>},
    {"aten::cos", Primitive1<kFloats, Op::kCos>},
    {"aten::tan", Primitive1<kFloats, Op::kTan>},
    {"aten::tanh", Primitive1<kFloats, Op::kTanh>},
    {"aten::erf", Primitive1<kFloats, Op::kErf>},
    {"aten::floor", Whole<Op::kFloor>},
    {"aten::ceil", Whole<Op::kCeil>},
    {"aten::trunc", Whole<Op::kTrunc>},
    {"aten::round", Whole<Op::kRound>},
    {"aten::frac", Formula<kFloats, [](Tensor x) { return x - Unary(Op::kTrunc, x); }>},
    {"aten::sign", Formula<kReals, [](Tensor x) { return Sign(x); }>},
    {"aten::sgn", Formula<kReals, [](Tensor x) { return Sign(x); }>},
    {"aten::bitwise_not", Primitive1<kIntegers, Op::kNot>, kIntegersAlone},
    {"aten::logical_not", Test<[](Tensor x) { return Equal(x, 0.0); }>, kBoolean | kWhole},
    {"aten::isnan", Test<[](Tensor x) { return NotEqual(x, x); }>, kBoolean},
    {"aten::isposinf", Test<[](Tensor x) { return IsInfinite(x, kInfinity); }>, kBoolean},
    {"aten::isneginf", Test<[](Tensor x) { return IsInfinite(x, -kInfinity); }>, kBoolean},
    {"aten::nan_to_num", NanToNum},
    // One kernel for all devices, which asks for the device's own loop.
    {.name = "aten::conj_physical_", .flags = kWhole},
    {.name = "aten::_conj_physical", .flags = kTakesAllValues},
};

}  // namespace

Rows UnaryRows() { return kUnaryRows; }

}  // namespace torch_lazy::device
