// SPDX-License-Identifier: Apache-2.0
#include "ir/evaluate_elementwise.h"

#include <cmath>
#include <limits>

#include "base/check.h"
#include "ir/round.h"

namespace torch_lazy::ir {
namespace {

double Transcendental(Op op, double a, double b) {
  switch (op) {
    case Op::kExp:
      return std::exp(a);
    case Op::kExp2:
      return std::exp2(a);
    case Op::kExpm1:
      return std::expm1(a);
    case Op::kLog:
      return std::log(a);
    case Op::kLog2:
      return std::log2(a);
    case Op::kLog10:
      return std::log10(a);
    case Op::kLog1p:
      return std::log1p(a);
    case Op::kSin:
      return std::sin(a);
    case Op::kCos:
      return std::cos(a);
    case Op::kTan:
      return std::tan(a);
    case Op::kTanh:
      return std::tanh(a);
    case Op::kErf:
      return std::erf(a);
    case Op::kPow:
      return std::pow(a, b);
    case Op::kAtan2:
      return std::atan2(a, b);
    default:
      break;
  }
  LAZY_CHECK(false, "no meaning for ", Info(op).text);
  return 0;
}

// As c10::div_floor_floating: exact quotients stay exact where a / b would round up to the next
// integer.
template <typename T>
T FloorDivFloat(T a, T b) {
  if (b == 0) return a / b;
  const T mod = std::fmod(a, b);
  T quotient = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(T(0), a / b);
  const T floored = std::floor(quotient);
  return quotient - floored > T(0.5) ? floored + 1 : floored;
}

template <typename T>
T RemainderFloat(T a, T b) {
  const T mod = std::fmod(a, b);
  return mod != 0 && (b < 0) != (mod < 0) ? mod + b : mod;
}

template <typename T>
T Float(Op op, T a, T b, T c) {
  switch (op) {
    case Op::kNeg:
      return -a;
    case Op::kAbs:
      return std::abs(a);
    case Op::kSqrt:
      return std::sqrt(a);
    case Op::kRsqrt:
      return 1 / std::sqrt(a);
    case Op::kRecip:
      return 1 / a;
    case Op::kFloor:
      return std::floor(a);
    case Op::kCeil:
      return std::ceil(a);
    case Op::kTrunc:
      return std::trunc(a);
    case Op::kRound:
      return std::nearbyint(a);
    case Op::kAdd:
      return a + b;
    case Op::kSub:
      return a - b;
    case Op::kMul:
      return a * b;
    case Op::kDiv:
      return a / b;
    case Op::kFloorDiv:
      return FloorDivFloat(a, b);
    case Op::kTruncDiv:
      return std::trunc(a / b);
    case Op::kFmod:
      return std::fmod(a, b);
    case Op::kRemainder:
      return RemainderFloat(a, b);
    case Op::kMax:
      return std::isnan(a) || a > b ? a : b;
    case Op::kMin:
      return std::isnan(a) || a < b ? a : b;
    case Op::kFma:
      return std::fma(a, b, c);
    default:
      return static_cast<T>(Transcendental(op, a, b));
  }
}

int64_t PowInteger(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  uint64_t result = 1, factor = base;
  for (; exponent != 0; exponent >>= 1, factor *= factor) {
    if ((exponent & 1) != 0) result *= factor;
  }
  return static_cast<int64_t>(result);
}

int64_t FloorDivInteger(int64_t a, int64_t b) { return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0); }

// The smallest number divided by -1 traps on x86, so division by -1 is negation.
int64_t DivideInteger(Op op, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return op == Op::kFmod || op == Op::kRemainder ? 0 : static_cast<int64_t>(-static_cast<uint64_t>(a));
  if (op == Op::kFloorDiv) return FloorDivInteger(a, b);
  if (op == Op::kTruncDiv) return a / b;
  if (op == Op::kFmod) return a % b;
  return a - FloorDivInteger(a, b) * b;
}

// Arithmetic in unsigned 64 bits wraps; WrapTo then keeps the low bits, which do not depend on the
// high ones.
int64_t Integer(Op op, int64_t a, int64_t b, int64_t c) {
  const uint64_t ua = a, ub = b;
  switch (op) {
    case Op::kNeg:
      return static_cast<int64_t>(-ua);
    case Op::kAbs:
      return a < 0 ? static_cast<int64_t>(-ua) : a;
    case Op::kNot:
      return ~a;
    case Op::kAdd:
      return static_cast<int64_t>(ua + ub);
    case Op::kSub:
      return static_cast<int64_t>(ua - ub);
    case Op::kMul:
      return static_cast<int64_t>(ua * ub);
    case Op::kFma:
      return static_cast<int64_t>(ua * ub + static_cast<uint64_t>(c));
    case Op::kMax:
      return a > b ? a : b;
    case Op::kMin:
      return a < b ? a : b;
    case Op::kAnd:
      return a & b;
    case Op::kOr:
      return a | b;
    case Op::kXor:
      return a ^ b;
    case Op::kPow:
      return PowInteger(a, b);
    case Op::kFloorDiv:
    case Op::kTruncDiv:
    case Op::kFmod:
    case Op::kRemainder:
      return DivideInteger(op, a, b);
    default:
      break;
  }
  LAZY_CHECK(false, "no meaning for ", Info(op).text, " of integers");
  return 0;
}

template <typename T>
bool CompareAs(Op op, T a, T b) {
  switch (op) {
    case Op::kEq:
      return a == b;
    case Op::kNe:
      return a != b;
    case Op::kLt:
      return a < b;
    case Op::kLe:
      return a <= b;
    case Op::kGt:
      return a > b;
    case Op::kGe:
      return a >= b;
    default:
      break;
  }
  LAZY_CHECK(false, Info(op).text, " compares nothing");
  return false;
}

template <typename T>
T At(absl::Span<const T> inputs, size_t k) {
  return k < inputs.size() ? inputs[k] : T(0);
}

}  // namespace

double ElementOf(Op op, DType dtype, absl::Span<const double> inputs) {
  const double a = At(inputs, 0), b = At(inputs, 1), c = At(inputs, 2);
  if (dtype == DType::kF64) return Float<double>(op, a, b, c);
  return Float<float>(op, static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
}

int64_t ElementOf(Op op, DType dtype, absl::Span<const int64_t> inputs) {
  const int64_t a = At(inputs, 0), b = At(inputs, 1), c = At(inputs, 2);
  if (dtype == DType::kBool && op == Op::kNot) return a == 0;
  return WrapTo(dtype, Integer(op, a, b, c));
}

bool Compare(Op op, double a, double b) { return CompareAs(op, a, b); }
bool Compare(Op op, int64_t a, int64_t b) { return CompareAs(op, a, b); }

}  // namespace torch_lazy::ir
